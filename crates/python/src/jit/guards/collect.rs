//! The places outside the arguments that the code of a function reads: globals, their contents, attributes of
//! modules, classes and objects, and what functions that are found there close over. The closed-over values of the
//! function itself are in the key of the call already.

mod cells;
mod excluded;

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyInt, PyList, PyModule, PyString, PyTuple, PyType};
use rustc_hash::{FxHashMap, FxHashSet};

use super::guard::{Guard, RecordedValue};
use super::packages::{Packages, is_file_installed, is_foreign};
use super::read_path::{ReadPath, ReadStep};
use super::values::{container_contents, function_of, is_library, is_plain, library_contents};
use crate::containers::{self, Sort};
use crate::error::{Fallible, if_there};

pub(super) use excluded::Excluded;

/// The number of functions whose code is read, and the number of objects whose attributes are.
const FUNCTION_LIMIT: usize = 1_000;

/// The number of functions of installed packages whose code is read. The nearest ones are read. Without this limit, a
/// definition could reach all of a library.
const LIBRARY_FUNCTION_LIMIT: usize = 32;

/// The number of attribute lookups.
const LOOKUP_LIMIT: usize = 5_000;

/// The name that stands for all attributes, where code computes the names of the attributes that it reads.
const ANY: &str = "*";

/// The number of guarded places.
const GUARD_LIMIT: usize = 4_096;

/// The number of places of one object that are guarded. Objects that refer to each other have an unlimited number of
/// places.
const PLACE_LIMIT: usize = 4;

/// The depth to which nested containers are searched for functions and objects.
const DEPTH: usize = 4;

/// The number of attribute lookups of the last collection.
static LAST_LOOKUPS: AtomicUsize = AtomicUsize::new(0);

fn note(lookups: usize) {
    LAST_LOOKUPS.store(lookups, Ordering::Relaxed);
}

/// The number of attribute lookups when a definition was read for the last time. Tests use it.
#[pyfunction]
fn last_looked() -> usize {
    LAST_LOOKUPS.load(Ordering::Relaxed)
}

pub(in crate::jit) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(last_looked, module)?)
}

/// A step as the code writes it: whether it is an item, and the key of the item or the name of the attribute.
type WrittenStep<'py> = (bool, Bound<'py, PyAny>);
type NamedRead<'py> = (Bound<'py, PyString>, Vec<WrittenStep<'py>>);

/// Collects guards, function by function.
pub(super) struct GuardCollector<'a, 'py> {
    py: Python<'py>,
    excluded: &'a Excluded,
    guards: Vec<Guard>,
    guarded_paths: FxHashSet<String>,
    functions: Vec<(Bound<'py, PyAny>, Option<ReadPath>)>,
    visited: FxHashSet<usize>,
    objects: Vec<(Bound<'py, PyAny>, ReadPath)>,
    /// The number of times that each object was found.
    path_counts: FxHashMap<usize, usize>,
    /// The attributes that the code seen so far names.
    names: Vec<String>,
    named: FxHashSet<String>,
    /// The values of which code takes items or attributes: a name, and the number of items that follow it.
    accessed: FxHashSet<(String, usize)>,
    /// The user's modules.
    modules: Vec<(Bound<'py, PyAny>, ReadPath)>,
    /// Whether code reads attributes whose names it computes.
    reads_any: bool,
    /// The attributes of classes, by class and name.
    of_classes: FxHashMap<(usize, String), Option<Bound<'py, PyAny>>>,
    packages: Packages,
    /// The number of functions of installed packages that were read.
    library_functions: usize,
    /// The number of attribute lookups.
    lookups: usize,
}

impl<'a, 'py> GuardCollector<'a, 'py> {
    pub(super) fn new(py: Python<'py>, excluded: &'a Excluded) -> GuardCollector<'a, 'py> {
        GuardCollector {
            py,
            excluded,
            guards: Vec::new(),
            guarded_paths: FxHashSet::default(),
            functions: Vec::new(),
            visited: FxHashSet::default(),
            objects: Vec::new(),
            path_counts: FxHashMap::default(),
            names: Vec::new(),
            named: FxHashSet::default(),
            accessed: FxHashSet::default(),
            modules: Vec::new(),
            reads_any: false,
            of_classes: FxHashMap::default(),
            packages: Packages::default(),
            library_functions: 0,
            lookups: 0,
        }
    }

    /// Adds a function whose closure and defaults the key of the call compares.
    pub(super) fn function(&mut self, function: Bound<'py, PyAny>) {
        if let Ok(Some(function)) = function_of(&function) {
            self.packages.add_own(&function);
        }
        self.functions.push((function, None));
    }

    /// Whether a function belongs to an installed package that is not one of the definition's own.
    fn is_library_function(&self, function: &Bound<'py, PyAny>, code: &Bound<'py, PyAny>) -> Fallible<bool> {
        if self.packages.is_own(&function.getattr(intern!(self.py, "__module__"))?) {
            return Ok(false);
        }
        is_file_installed(&code.getattr(intern!(self.py, "co_filename"))?)
    }

    /// Adds a module of the user's. Those of installed packages are not searched: a package has thousands of names, and
    /// a module may import others when it is asked for one.
    fn module(
        &mut self,
        module: &Bound<'py, PyAny>,
        path: impl FnOnce() -> Fallible<ReadPath>,
    ) -> Fallible<()> {
        if !self.packages.is_installed(&module.getattr(intern!(self.py, "__name__"))?)? {
            self.modules.push((module.clone(), path()?));
        }
        Ok(())
    }

    /// Adds an object that the key of the call compares by identity. The attributes that code reads of it are
    /// guarded.
    pub(super) fn object(&mut self, object: &Bound<'py, PyAny>, label: &str) -> Fallible<()> {
        if let Some(inside) = library_contents(object)? {
            self.value(ReadPath::object(object, label)?.then(ReadStep::Contents), inside)?;
        }
        if object.is_instance_of::<PyModule>() {
            self.module(object, || ReadPath::object(object, label))?;
        } else if containers::sort(object)? == Sort::Object && !self.is_foreign_class(&object.get_type())? {
            self.look_into(object, ReadPath::object(object, label)?);
        }
        Ok(())
    }

    /// Guards the attributes of an object that the code names, wherever the code names them.
    fn look_into(&mut self, object: &Bound<'py, PyAny>, path: ReadPath) {
        let count = self.path_counts.entry(object.as_ptr() as usize).or_default();
        *count += 1;
        if *count <= PLACE_LIMIT && self.objects.len() < FUNCTION_LIMIT {
            self.objects.push((object.clone(), path));
        }
    }

    /// The guards of everything that was added.
    pub(super) fn finish(mut self) -> Fallible<Vec<Guard>> {
        let (mut function, mut object, mut names, mut whole) = (0, 0, 0, 0);
        loop {
            if function < self.functions.len().min(FUNCTION_LIMIT) {
                let (value, path) = self.functions[function].clone();
                function += 1;
                self.read_function(&value, path)?;
            } else if object < self.objects.len() {
                for name in 0..names {
                    self.attribute(object, &self.names[name].clone())?;
                }
                object += 1;
            } else if names < self.names.len() {
                let name = self.names[names].clone();
                for object in 0..object {
                    self.attribute(object, &name)?;
                }
                names += 1;
            } else if self.reads_any && !self.modules.is_empty() {
                for (module, path) in std::mem::take(&mut self.modules) {
                    self.look_into(&module, path);
                }
            } else if self.reads_any && whole < self.objects.len() {
                for name in self.own_names(&self.objects[whole].0) {
                    self.attribute(whole, &name)?;
                }
                whole += 1;
            } else {
                note(self.lookups);
                for guard in &mut self.guards {
                    guard.note_accessed(&self.accessed);
                }
                return Ok(self.guards);
            }
        }
    }

    fn is_foreign_class(&self, class: &Bound<'py, PyType>) -> Fallible<bool> {
        // A namespace class of the standard library is like a class of the user's.
        let module = class.getattr(intern!(self.py, "__module__"))?;
        let is_bare = ["SimpleNamespace", "Namespace"].contains(&class.name()?.to_str()?);
        Ok(is_foreign(&module)? && !is_bare)
    }

    fn read_function(&mut self, value: &Bound<'py, PyAny>, path: Option<ReadPath>) -> Fallible<()> {
        let py = self.py;
        let Some(function) = function_of(value)? else { return Ok(()) };
        let code = function.getattr(intern!(py, "__code__"))?;
        if !self.visited.insert(function.as_ptr() as usize)
            || self.excluded.codes.contains(&(code.as_ptr() as usize))
            || is_library(&function.getattr(intern!(py, "__module__"))?)
        {
            return Ok(());
        }
        if self.is_library_function(&function, &code)? {
            if self.library_functions >= LIBRARY_FUNCTION_LIMIT {
                return Ok(());
            }
            self.library_functions += 1;
        }
        let excluded = PyFrozenSet::new(py, self.excluded.codes.iter().copied())?;
        let reads = py.import("defn._reads")?.call_method1(intern!(py, "reads"), (&code, excluded))?;
        let (globals, cells, attributes): (Vec<NamedRead<'py>>, Vec<NamedRead<'py>>, Vec<String>) = (
            reads.get_item(0)?.extract()?,
            reads.get_item(1)?.extract()?,
            reads.get_item(2)?.try_iter()?.map(|name| name?.extract()).collect::<PyResult<_>>()?,
        );
        for name in reads.get_item(3)?.try_iter()? {
            self.accessed.insert(name?.extract()?);
        }
        for name in attributes {
            if name == ANY {
                self.reads_any = true;
                continue;
            }
            if self.named.insert(name.clone()) {
                self.names.push(name);
            }
        }
        let module =
            function.getattr(intern!(py, "__globals__"))?.cast_into::<PyDict>().map_err(PyErr::from)?;
        for (name, steps) in globals {
            let at = ReadPath::global(&module, &name);
            match module.get_item(&name)? {
                Some(value) => self.follow(at, value, &steps)?,
                None if py.import("builtins")?.hasattr(&name)? => {}
                None => self.guard(at, RecordedValue::Absent)?,
            }
        }
        self.read_cells(&function, &code, &cells, path.as_ref())?;
        let Some(path) = path else { return Ok(()) };
        for name in [intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
            let defaults = function.getattr(name)?;
            if !defaults.is_none() {
                self.value(path.then(ReadStep::OfFunction(name.clone().unbind())), defaults)?;
            }
        }
        Ok(())
    }

    /// Follows the attributes and constant items that the code reads of a value.
    fn follow(
        &mut self,
        mut path: ReadPath,
        mut value: Bound<'py, PyAny>,
        steps: &[WrittenStep<'py>],
    ) -> Fallible<()> {
        for (is_item, key) in steps {
            let next = if *is_item {
                entry(&value, key)?
            } else {
                if let Ok(module) = value.cast::<PyModule>()
                    && is_foreign(&module.getattr(intern!(self.py, "__name__"))?)?
                {
                    return Ok(());
                }
                self.look_up(&value, &key.extract::<String>()?)?
            };
            let Some(next) = next else { break };
            path = path.then(if *is_item {
                ReadStep::Item(key.clone().unbind())
            } else {
                ReadStep::Attribute(key.clone().cast_into::<PyString>().map_err(PyErr::from)?.unbind())
            });
            value = next;
        }
        self.value(path, value)
    }

    /// The value of an attribute, without running a property.
    fn look_up(&mut self, value: &Bound<'py, PyAny>, name: &str) -> Fallible<Option<Bound<'py, PyAny>>> {
        let py = self.py;
        let is_module = value.is_instance_of::<PyModule>();
        if is_module || value.is_instance_of::<PyType>() {
            return Ok(if_there(py, value.getattr_opt(name))?.flatten());
        }
        if containers::sort(value)? != Sort::Object && !containers::has_fields(value)? {
            return Ok(None);
        }
        let class = value.get_type();
        let Some(own) = self.own_attribute(value, &class, name)? else {
            // A class may compute attributes that it does not have. Such an attribute is read, too.
            let computes = !self.is_foreign_class(&class)? && class.hasattr(intern!(py, "__getattr__"))?;
            return Ok(if computes { if_there(py, value.getattr_opt(name))?.flatten() } else { None });
        };
        if let Some(getter) = if_there(py, own.getattr_opt(intern!(py, "fget")))?.flatten() {
            self.functions.push((getter, None));
            return Ok(None);
        }
        if own.get_type().name()? == "cached_property" {
            self.functions.push((own.getattr("func")?, None));
            return Ok(None);
        }
        let is_foreign = self.is_foreign_class(&class)?;
        Ok(if is_foreign { None } else { if_there(py, value.getattr_opt(name))?.flatten() })
    }

    /// The attribute of an object or its class as it is stored.
    fn own_attribute(
        &mut self,
        value: &Bound<'py, PyAny>,
        class: &Bound<'py, PyType>,
        name: &str,
    ) -> Fallible<Option<Bound<'py, PyAny>>> {
        let py = self.py;
        let of_class = match self.of_classes.get(&(class.as_ptr() as usize, name.to_owned())) {
            Some(found) => found.clone(),
            None => {
                let mut found = None;
                for base in class.mro() {
                    found = base.getattr(intern!(py, "__dict__"))?.get_item(name).ok();
                    if found.is_some() {
                        break;
                    }
                }
                self.of_classes.insert((class.as_ptr() as usize, name.to_owned()), found.clone());
                found
            }
        };
        let is_data = |own: &Bound<'py, PyAny>| own.get_type().hasattr(intern!(py, "__set__"));
        if let Some(own) = &of_class
            && is_data(own)?
        {
            return Ok(of_class);
        }
        let attributes = value.getattr_opt(intern!(py, "__dict__")).ok().flatten();
        let own = match attributes.as_ref().and_then(|attributes| attributes.cast::<PyDict>().ok()) {
            Some(attributes) => attributes.get_item(name)?,
            None => None,
        };
        Ok(own.or(of_class))
    }

    /// The names of the attributes that the object itself has.
    fn own_names(&self, value: &Bound<'py, PyAny>) -> Vec<String> {
        let mut names = Vec::new();
        if let Ok(Some(attributes)) = value.getattr_opt(intern!(self.py, "__dict__"))
            && let Ok(keys) = attributes.call_method0("keys").and_then(|keys| keys.try_iter())
        {
            names.extend(keys.flatten().filter_map(|key| key.extract::<String>().ok()));
        }
        if let Ok(Some(slots)) = value.get_type().getattr_opt(intern!(self.py, "__slots__")) {
            names.extend(
                slots.try_iter().into_iter().flatten().flatten().filter_map(|name| name.extract().ok()),
            );
        }
        names
    }

    fn attribute(&mut self, object: usize, name: &str) -> Fallible<()> {
        let (value, path) = self.objects[object].clone();
        if self.lookups >= LOOKUP_LIMIT {
            return Ok(());
        }
        self.lookups += 1;
        if let Some(found) = self.look_up(&value, name)? {
            let step = ReadStep::Attribute(PyString::intern(self.py, name).unbind());
            self.value(path.then(step), found)?;
        }
        Ok(())
    }

    /// Guards the value of a place, and the places that are reached from it.
    fn value(&mut self, path: ReadPath, value: Bound<'py, PyAny>) -> Fallible<()> {
        self.value_within(path, value, 0)
    }

    fn value_within(&mut self, path: ReadPath, value: Bound<'py, PyAny>, depth: usize) -> Fallible<()> {
        let py = self.py;
        if self.excluded.objects.contains(&(value.as_ptr() as usize)) {
            return Ok(());
        }
        if is_plain(&value) {
            return self.guard(path, RecordedValue::Plain(value.unbind()));
        }
        if let Some(recorded) = RecordedValue::elements(&value, path.name(py))? {
            return self.guard(path, recorded);
        }
        if let Some(inside) = library_contents(&value)? {
            self.value_within(path.then(ReadStep::Contents), inside, depth + 1)?;
            if containers::sort(&value)? == Sort::Leaf {
                return Ok(());
            }
        }
        if let Some(function) = function_of(&value)? {
            let code = function.getattr(intern!(py, "__code__"))?;
            if self.excluded.codes.contains(&(code.as_ptr() as usize)) {
                return Ok(());
            }
            if let Ok(Some(receiver)) = value.getattr_opt(intern!(py, "__self__"))
                && containers::sort(&receiver)? == Sort::Object
                && !self.path_counts.contains_key(&(receiver.as_ptr() as usize))
            {
                let at = path.then(ReadStep::Attribute(intern!(py, "__self__").clone().unbind()));
                self.look_into(&receiver, at);
            }
            self.functions.push((value, Some(path.clone())));
            return self.guard(path, RecordedValue::Code(code.unbind()));
        }
        if value.get_type().name()? == "partial" && value.hasattr(intern!(py, "keywords"))? {
            for name in ["func", "args", "keywords"] {
                let step = ReadStep::Attribute(PyString::intern(py, name).unbind());
                self.value_within(path.then(step), value.getattr(name)?, depth + 1)?;
            }
            return Ok(());
        }
        if let Ok(class) = value.cast::<PyType>() {
            if !self.is_foreign_class(class)? {
                self.look_into(&value, path.clone());
                self.guard(path, RecordedValue::Class(value.unbind()))?;
            }
            return Ok(());
        }
        match containers::sort(&value)? {
            Sort::Leaf => Ok(()),
            Sort::Object => {
                if value.is_instance_of::<PyModule>() {
                    self.module(&value, || Ok(path))?;
                } else if !self.is_foreign_class(&value.get_type())? {
                    self.look_into(&value, path.clone());
                    self.guard(path, RecordedValue::Object(value.get_type().into_any().unbind()))?;
                }
                Ok(())
            }
            Sort::Plain | Sort::Function => self.guard(path, RecordedValue::Plain(value.unbind())),
            Sort::Container => {
                let is_whole = self.guard_container(&path, &value)?;
                if is_whole && depth < DEPTH {
                    self.inside(&path, &value, depth)?;
                }
                Ok(())
            }
        }
    }

    /// Guards a container. Returns whether all of its contents are compared.
    fn guard_container(&mut self, path: &ReadPath, value: &Bound<'py, PyAny>) -> Fallible<bool> {
        let contents = container_contents(value)?;
        let is_whole = contents.is_some();
        let recorded = match contents {
            Some(contents) => RecordedValue::Container(Box::new(contents.into_retained(self.py)?)),
            None => RecordedValue::Large(
                value.get_type().into_any().unbind(),
                if_there(self.py, value.len())?.unwrap_or(0),
            ),
        };
        self.guard(path.clone(), recorded)?;
        Ok(is_whole)
    }

    /// Guards what functions and objects in a container hold.
    fn inside(&mut self, path: &ReadPath, value: &Bound<'py, PyAny>, depth: usize) -> Fallible<()> {
        for (key, item) in entries(value)? {
            let at = path.then(ReadStep::Item(key.unbind()));
            match containers::sort(&item)? {
                Sort::Leaf | Sort::Object | Sort::Function => self.value_within(at, item, depth + 1)?,
                Sort::Container if depth < DEPTH => self.inside(&at, &item, depth + 1)?,
                Sort::Container | Sort::Plain => {}
            }
        }
        Ok(())
    }

    fn guard(&mut self, path: ReadPath, recorded: RecordedValue) -> Fallible<()> {
        if self.guards.len() < GUARD_LIMIT && self.guarded_paths.insert(path.key(self.py)) {
            self.guards.push(Guard::new(path, recorded));
        }
        Ok(())
    }
}

/// The entry of a dict, a list or a tuple that code reads.
fn entry<'py>(value: &Bound<'py, PyAny>, key: &Bound<'py, PyAny>) -> Fallible<Option<Bound<'py, PyAny>>> {
    let is_container = value.is_instance_of::<PyDict>()
        || value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>();
    if is_container { if_there(value.py(), value.get_item(key)) } else { Ok(None) }
}

/// The entries of a dict, a list or a tuple, with their keys or positions.
fn entries<'py>(value: &Bound<'py, PyAny>) -> Fallible<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(dict.iter().collect());
    }
    let mut items = Vec::new();
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for (position, item) in value.try_iter()?.enumerate() {
            items.push((PyInt::new(value.py(), position).into_any(), item?));
        }
    }
    Ok(items)
}
