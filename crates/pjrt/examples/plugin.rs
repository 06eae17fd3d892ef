//! Prints what a plugin says of itself: `cargo run -p defn-pjrt --example plugin -- PATH`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("the path of a plugin is required")?;
    let plugin = defn_pjrt::Plugin::load(path)?;
    println!("PJRT {}, extensions {:?}", plugin.version(), plugin.extensions());
    for (name, value) in plugin.attributes()? {
        println!("{name}: {value:?}");
    }
    Ok(())
}
