//! The argument structs of all functions that are used, and the structs that they point to.

use std::ffi::{c_char, c_int, c_void};

use super::*;

/// A struct of the PJRT C API.
pub(crate) trait Struct {
    /// A struct with its size filled in; all other fields are null or zero.
    fn new() -> Self;
}

/// Declares structs with their names in C, and adds the two fields with which every struct begins.
macro_rules! structs {
    ($($name:ident = $c:literal { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            pub(crate) struct $name {
                pub struct_size: usize,
                pub extension_start: *mut ExtensionBase,
                $(pub $field: $type,)*
            }

            impl Struct for $name {
                fn new() -> Self {
                    // SAFETY: every field is an integer, a bool, a pointer or an optional function; zero is a valid
                    // value for all of them.
                    let mut zero: Self = unsafe { std::mem::zeroed() };
                    zero.struct_size = size_of::<Self>();
                    zero
                }
            }
        )*

        /// The layouts of all structs.
        #[cfg(test)]
        pub(super) fn layouts() -> Vec<Layout> {
            vec![$(Layout {
                name: $c,
                size: size_of::<$name>(),
                fields: vec![
                    ("extension_start", std::mem::offset_of!($name, extension_start)),
                    $((
                        stringify!($field).trim_start_matches("r#"),
                        std::mem::offset_of!($name, $field),
                    ),)*
                ],
            }),*]
        }
    };
}

structs! {
    ErrorDestroyArgs = "PJRT_Error_Destroy_Args" {
        error: *mut PjrtError,
    }
    ErrorMessageArgs = "PJRT_Error_Message_Args" {
        error: *const PjrtError,
        message: *const c_char,
        message_size: usize,
    }
    ErrorGetCodeArgs = "PJRT_Error_GetCode_Args" {
        error: *const PjrtError,
        code: c_int,
    }
    PluginInitializeArgs = "PJRT_Plugin_Initialize_Args" {}
    PluginAttributesArgs = "PJRT_Plugin_Attributes_Args" {
        attributes: *const NamedValue,
        num_attributes: usize,
    }
    EventDestroyArgs = "PJRT_Event_Destroy_Args" {
        event: *mut Event,
    }
    EventIsReadyArgs = "PJRT_Event_IsReady_Args" {
        event: *mut Event,
        is_ready: bool,
    }
    EventAwaitArgs = "PJRT_Event_Await_Args" {
        event: *mut Event,
    }
    EventOnReadyArgs = "PJRT_Event_OnReady_Args" {
        event: *mut Event,
        callback: Option<OnReady>,
        user_arg: *mut c_void,
    }
    ClientCreateArgs = "PJRT_Client_Create_Args" {
        create_options: *const NamedValue,
        num_options: usize,
        kv_get_callback: Option<Call<KeyValueGetArgs>>,
        kv_get_user_arg: *mut c_void,
        kv_put_callback: Option<Call<KeyValuePutArgs>>,
        kv_put_user_arg: *mut c_void,
        client: *mut Client,
        kv_try_get_callback: Option<Call<KeyValueTryGetArgs>>,
        kv_try_get_user_arg: *mut c_void,
    }
    KeyValueGetArgs = "PJRT_KeyValueGetCallback_Args" {
        key: *const c_char,
        key_size: usize,
        timeout_in_ms: c_int,
        callback_error: *const CallbackError,
        user_arg: *mut c_void,
        value: *mut c_char,
        value_size: usize,
        value_deleter_callback: Option<ValueDeleter>,
    }
    KeyValueTryGetArgs = "PJRT_KeyValueTryGetCallback_Args" {
        key: *const c_char,
        key_size: usize,
        callback_error: *const CallbackError,
        user_arg: *mut c_void,
        value: *mut c_char,
        value_size: usize,
        value_deleter_callback: Option<ValueDeleter>,
    }
    KeyValuePutArgs = "PJRT_KeyValuePutCallback_Args" {
        key: *const c_char,
        key_size: usize,
        value: *const c_char,
        value_size: usize,
        callback_error: *const CallbackError,
        user_arg: *mut c_void,
    }
    ClientDestroyArgs = "PJRT_Client_Destroy_Args" {
        client: *mut Client,
    }
    ClientPlatformNameArgs = "PJRT_Client_PlatformName_Args" {
        client: *mut Client,
        platform_name: *const c_char,
        platform_name_size: usize,
    }
    ClientPlatformVersionArgs = "PJRT_Client_PlatformVersion_Args" {
        client: *mut Client,
        platform_version: *const c_char,
        platform_version_size: usize,
    }
    ClientDevicesArgs = "PJRT_Client_Devices_Args" {
        client: *mut Client,
        devices: *const *mut Device,
        num_devices: usize,
    }
    ClientAddressableDevicesArgs = "PJRT_Client_AddressableDevices_Args" {
        client: *mut Client,
        addressable_devices: *const *mut Device,
        num_addressable_devices: usize,
    }
    ClientCompileArgs = "PJRT_Client_Compile_Args" {
        client: *mut Client,
        program: *const Program,
        compile_options: *const c_char,
        compile_options_size: usize,
        executable: *mut LoadedExecutable,
    }
    ClientBufferFromHostBufferArgs = "PJRT_Client_BufferFromHostBuffer_Args" {
        client: *mut Client,
        data: *const c_void,
        r#type: c_int,
        dims: *const i64,
        num_dims: usize,
        byte_strides: *const i64,
        num_byte_strides: usize,
        host_buffer_semantics: c_int,
        device: *mut Device,
        memory: *mut Memory,
        device_layout: *mut BufferMemoryLayout,
        done_with_host_buffer: *mut Event,
        buffer: *mut Buffer,
    }
    DeviceDescriptionIdArgs = "PJRT_DeviceDescription_Id_Args" {
        device_description: *mut DeviceDescription,
        id: c_int,
    }
    DeviceDescriptionProcessIndexArgs = "PJRT_DeviceDescription_ProcessIndex_Args" {
        device_description: *mut DeviceDescription,
        process_index: c_int,
    }
    DeviceDescriptionAttributesArgs = "PJRT_DeviceDescription_Attributes_Args" {
        device_description: *mut DeviceDescription,
        num_attributes: usize,
        attributes: *const NamedValue,
    }
    DeviceDescriptionKindArgs = "PJRT_DeviceDescription_Kind_Args" {
        device_description: *mut DeviceDescription,
        device_kind: *const c_char,
        device_kind_size: usize,
    }
    DeviceDescriptionDebugStringArgs = "PJRT_DeviceDescription_DebugString_Args" {
        device_description: *mut DeviceDescription,
        debug_string: *const c_char,
        debug_string_size: usize,
    }
    DeviceGetDescriptionArgs = "PJRT_Device_GetDescription_Args" {
        device: *mut Device,
        device_description: *mut DeviceDescription,
    }
    DeviceIsAddressableArgs = "PJRT_Device_IsAddressable_Args" {
        device: *mut Device,
        is_addressable: bool,
    }
    DeviceLocalHardwareIdArgs = "PJRT_Device_LocalHardwareId_Args" {
        device: *mut Device,
        local_hardware_id: c_int,
    }
    DeviceAddressableMemoriesArgs = "PJRT_Device_AddressableMemories_Args" {
        device: *mut Device,
        memories: *const *mut Memory,
        num_memories: usize,
    }
    DeviceDefaultMemoryArgs = "PJRT_Device_DefaultMemory_Args" {
        device: *mut Device,
        memory: *mut Memory,
    }
    DeviceMemoryStatsArgs = "PJRT_Device_MemoryStats_Args" {
        device: *mut Device,
        bytes_in_use: i64,
        peak_bytes_in_use: i64,
        peak_bytes_in_use_is_set: bool,
        num_allocs: i64,
        num_allocs_is_set: bool,
        largest_alloc_size: i64,
        largest_alloc_size_is_set: bool,
        bytes_limit: i64,
        bytes_limit_is_set: bool,
        bytes_reserved: i64,
        bytes_reserved_is_set: bool,
        peak_bytes_reserved: i64,
        peak_bytes_reserved_is_set: bool,
        bytes_reservable_limit: i64,
        bytes_reservable_limit_is_set: bool,
        largest_free_block_bytes: i64,
        largest_free_block_bytes_is_set: bool,
        pool_bytes: i64,
        pool_bytes_is_set: bool,
        peak_pool_bytes: i64,
        peak_pool_bytes_is_set: bool,
    }
    MemoryIdArgs = "PJRT_Memory_Id_Args" {
        memory: *mut Memory,
        id: c_int,
    }
    MemoryKindArgs = "PJRT_Memory_Kind_Args" {
        memory: *mut Memory,
        kind: *const c_char,
        kind_size: usize,
    }
    MemoryDebugStringArgs = "PJRT_Memory_DebugString_Args" {
        memory: *mut Memory,
        debug_string: *const c_char,
        debug_string_size: usize,
    }
    ExecutableDestroyArgs = "PJRT_Executable_Destroy_Args" {
        executable: *mut Executable,
    }
    ExecutableNameArgs = "PJRT_Executable_Name_Args" {
        executable: *mut Executable,
        executable_name: *const c_char,
        executable_name_size: usize,
    }
    ExecutableNumOutputsArgs = "PJRT_Executable_NumOutputs_Args" {
        executable: *mut Executable,
        num_outputs: usize,
    }
    ExecutableSizeOfGeneratedCodeInBytesArgs = "PJRT_Executable_SizeOfGeneratedCodeInBytes_Args" {
        executable: *mut Executable,
        size_in_bytes: i64,
    }
    ExecutableSerializeArgs = "PJRT_Executable_Serialize_Args" {
        executable: *const Executable,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_executable: *mut SerializedExecutable,
        serialized_executable_deleter: Option<Procedure<SerializedExecutable>>,
    }
    ExecutableOutputElementTypesArgs = "PJRT_Executable_OutputElementTypes_Args" {
        executable: *mut Executable,
        output_types: *mut c_int,
        num_output_types: usize,
    }
    ExecutableOutputDimensionsArgs = "PJRT_Executable_OutputDimensions_Args" {
        executable: *mut Executable,
        num_outputs: usize,
        dims: *const i64,
        dim_sizes: *const usize,
    }
    ExecutableGetCompiledMemoryStatsArgs = "PJRT_Executable_GetCompiledMemoryStats_Args" {
        executable: *mut Executable,
        generated_code_size_in_bytes: i64,
        argument_size_in_bytes: i64,
        output_size_in_bytes: i64,
        alias_size_in_bytes: i64,
        temp_size_in_bytes: i64,
        host_generated_code_size_in_bytes: i64,
        host_argument_size_in_bytes: i64,
        host_output_size_in_bytes: i64,
        host_alias_size_in_bytes: i64,
        host_temp_size_in_bytes: i64,
        peak_memory_in_bytes: i64,
    }
    ExecutableOptimizedProgramArgs = "PJRT_Executable_OptimizedProgram_Args" {
        executable: *mut Executable,
        program: *mut Program,
    }
    LoadedExecutableDestroyArgs = "PJRT_LoadedExecutable_Destroy_Args" {
        executable: *mut LoadedExecutable,
    }
    LoadedExecutableGetExecutableArgs = "PJRT_LoadedExecutable_GetExecutable_Args" {
        loaded_executable: *mut LoadedExecutable,
        executable: *mut Executable,
    }
    LoadedExecutableAddressableDevicesArgs = "PJRT_LoadedExecutable_AddressableDevices_Args" {
        executable: *mut LoadedExecutable,
        addressable_devices: *const *mut Device,
        num_addressable_devices: usize,
    }
    LoadedExecutableExecuteArgs = "PJRT_LoadedExecutable_Execute_Args" {
        executable: *mut LoadedExecutable,
        options: *mut ExecuteOptions,
        argument_lists: *const *const *mut Buffer,
        num_devices: usize,
        num_args: usize,
        output_lists: *const *mut *mut Buffer,
        device_complete_events: *mut *mut Event,
        execute_device: *mut Device,
    }
    ExecutableDeserializeAndLoadArgs = "PJRT_Executable_DeserializeAndLoad_Args" {
        client: *mut Client,
        serialized_executable: *const c_char,
        serialized_executable_size: usize,
        loaded_executable: *mut LoadedExecutable,
        overridden_serialized_compile_options: *const c_char,
        overridden_serialized_compile_options_size: usize,
    }
    BufferDestroyArgs = "PJRT_Buffer_Destroy_Args" {
        buffer: *mut Buffer,
    }
    BufferElementTypeArgs = "PJRT_Buffer_ElementType_Args" {
        buffer: *mut Buffer,
        r#type: c_int,
    }
    BufferDimensionsArgs = "PJRT_Buffer_Dimensions_Args" {
        buffer: *mut Buffer,
        dims: *const i64,
        num_dims: usize,
    }
    BufferOnDeviceSizeInBytesArgs = "PJRT_Buffer_OnDeviceSizeInBytes_Args" {
        buffer: *mut Buffer,
        on_device_size_in_bytes: usize,
    }
    BufferDeviceArgs = "PJRT_Buffer_Device_Args" {
        buffer: *mut Buffer,
        device: *mut Device,
    }
    BufferMemoryArgs = "PJRT_Buffer_Memory_Args" {
        buffer: *mut Buffer,
        memory: *mut Memory,
    }
    BufferDeleteArgs = "PJRT_Buffer_Delete_Args" {
        buffer: *mut Buffer,
    }
    BufferIsDeletedArgs = "PJRT_Buffer_IsDeleted_Args" {
        buffer: *mut Buffer,
        is_deleted: bool,
    }
    BufferCopyToDeviceArgs = "PJRT_Buffer_CopyToDevice_Args" {
        buffer: *mut Buffer,
        dst_device: *mut Device,
        dst_buffer: *mut Buffer,
    }
    BufferCopyToMemoryArgs = "PJRT_Buffer_CopyToMemory_Args" {
        buffer: *mut Buffer,
        dst_memory: *mut Memory,
        dst_buffer: *mut Buffer,
    }
    BufferToHostBufferArgs = "PJRT_Buffer_ToHostBuffer_Args" {
        src: *mut Buffer,
        host_layout: *mut BufferMemoryLayout,
        dst: *mut c_void,
        dst_size: usize,
        event: *mut Event,
    }
    BufferCopyRawToHostArgs = "PJRT_Buffer_CopyRawToHost_Args" {
        buffer: *mut Buffer,
        dst: *mut c_void,
        offset: i64,
        transfer_size: i64,
        event: *mut Event,
    }
    BufferReadyEventArgs = "PJRT_Buffer_ReadyEvent_Args" {
        buffer: *mut Buffer,
        event: *mut Event,
    }
    BufferIsOnCpuArgs = "PJRT_Buffer_IsOnCpu_Args" {
        buffer: *mut Buffer,
        is_on_cpu: bool,
    }
    BufferUnsafePointerArgs = "PJRT_Buffer_UnsafePointer_Args" {
        buffer: *mut Buffer,
        buffer_pointer: usize,
    }
    BufferIncreaseExternalReferenceCountArgs = "PJRT_Buffer_IncreaseExternalReferenceCount_Args" {
        buffer: *mut Buffer,
    }
    BufferDecreaseExternalReferenceCountArgs = "PJRT_Buffer_DecreaseExternalReferenceCount_Args" {
        buffer: *mut Buffer,
    }
    ClientCreateViewOfDeviceBufferArgs = "PJRT_Client_CreateViewOfDeviceBuffer_Args" {
        client: *mut Client,
        device_buffer_ptr: *mut c_void,
        dims: *const i64,
        num_dims: usize,
        element_type: c_int,
        layout: *mut BufferMemoryLayout,
        device: *mut Device,
        on_delete_callback: Option<OnDelete>,
        on_delete_callback_arg: *mut c_void,
        stream: isize,
        buffer: *mut Buffer,
        memory: *mut Memory,
    }
    TopologyDescriptionCreateArgs = "PJRT_TopologyDescription_Create_Args" {
        topology_name: *const c_char,
        topology_name_size: usize,
        create_options: *const NamedValue,
        num_options: usize,
        topology: *mut TopologyDescription,
    }
    TopologyDescriptionDestroyArgs = "PJRT_TopologyDescription_Destroy_Args" {
        topology: *mut TopologyDescription,
    }
    TopologyDescriptionPlatformNameArgs = "PJRT_TopologyDescription_PlatformName_Args" {
        topology: *const TopologyDescription,
        platform_name: *const c_char,
        platform_name_size: usize,
    }
    TopologyDescriptionPlatformVersionArgs = "PJRT_TopologyDescription_PlatformVersion_Args" {
        topology: *mut TopologyDescription,
        platform_version: *const c_char,
        platform_version_size: usize,
    }
    TopologyDescriptionGetDeviceDescriptionsArgs = "PJRT_TopologyDescription_GetDeviceDescriptions_Args" {
        topology: *const TopologyDescription,
        descriptions: *const *mut DeviceDescription,
        num_descriptions: usize,
    }
    TopologyDescriptionSerializeArgs = "PJRT_TopologyDescription_Serialize_Args" {
        topology: *mut TopologyDescription,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_topology: *mut SerializedTopology,
        serialized_topology_deleter: Option<Procedure<SerializedTopology>>,
    }
    CompileArgs = "PJRT_Compile_Args" {
        topology: *const TopologyDescription,
        program: *const Program,
        compile_options: *const c_char,
        compile_options_size: usize,
        client: *mut Client,
        executable: *mut Executable,
    }
    Program = "PJRT_Program" {
        code: *mut c_char,
        code_size: usize,
        format: *const c_char,
        format_size: usize,
    }
    ExecuteOptions = "PJRT_ExecuteOptions" {
        send_callbacks: Unused,
        recv_callbacks: Unused,
        num_send_ops: usize,
        num_recv_ops: usize,
        launch_id: c_int,
        non_donatable_input_indices: *const i64,
        num_non_donatable_input_indices: usize,
        context: *mut ExecuteContext,
        call_location: *const c_char,
        num_tasks: usize,
        task_ids: *mut c_int,
        incarnation_ids: *mut i64,
    }
}
