//! The plugin's function table, up to the last function that is used.

use super::*;

/// The arguments of a function in the table.
pub(crate) trait Arguments: Struct {
    /// The function's name in C.
    const CALL: &'static str;

    /// The function, or `None` if the plugin lacks it.
    fn function(table: &Table) -> Option<Call<Self>>
    where
        Self: Sized;
}

/// The type of an entry: a function of its arguments, or a pointer that is never used.
macro_rules! entry {
    () => { Unused };
    ($args:ident) => { Option<Call<$args>> };
}

/// Declares the table; only entries with arguments can be called.
macro_rules! table {
    ($($field:ident = $c:literal $(: $args:ident)?;)*) => {
        /// The function table up to the last function used here. A plugin's table may be shorter or longer.
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub(crate) struct Table {
            pub struct_size: usize,
            pub extension_start: *mut ExtensionBase,
            pub version: ApiVersion,
            pub error_destroy: Option<Procedure<ErrorDestroyArgs>>,
            pub error_message: Option<Procedure<ErrorMessageArgs>>,
            $(pub $field: entry!($($args)?),)*
        }

        $($(
            impl Arguments for $args {
                const CALL: &'static str = $c;

                fn function(table: &Table) -> Option<Call<$args>> {
                    table.$field
                }
            }
        )?)*

        /// The offset of every function.
        #[cfg(test)]
        pub(super) fn layout() -> Layout {
            use std::mem::offset_of;
            Layout {
                name: "PJRT_Api",
                // Later versions append functions, so the size is not compared.
                size: 0,
                fields: vec![
                    ("extension_start", offset_of!(Table, extension_start)),
                    ("pjrt_api_version", offset_of!(Table, version)),
                    ("PJRT_Error_Destroy", offset_of!(Table, error_destroy)),
                    ("PJRT_Error_Message", offset_of!(Table, error_message)),
                    $(($c, offset_of!(Table, $field)),)*
                ],
            }
        }
    };
}

table! {
    error_get_code = "PJRT_Error_GetCode": ErrorGetCodeArgs;
    plugin_initialize = "PJRT_Plugin_Initialize": PluginInitializeArgs;
    plugin_attributes = "PJRT_Plugin_Attributes": PluginAttributesArgs;
    event_destroy = "PJRT_Event_Destroy": EventDestroyArgs;
    event_is_ready = "PJRT_Event_IsReady": EventIsReadyArgs;
    event_error = "PJRT_Event_Error";
    event_await = "PJRT_Event_Await": EventAwaitArgs;
    event_on_ready = "PJRT_Event_OnReady": EventOnReadyArgs;
    client_create = "PJRT_Client_Create": ClientCreateArgs;
    client_destroy = "PJRT_Client_Destroy": ClientDestroyArgs;
    client_platform_name = "PJRT_Client_PlatformName": ClientPlatformNameArgs;
    client_process_index = "PJRT_Client_ProcessIndex";
    client_platform_version = "PJRT_Client_PlatformVersion": ClientPlatformVersionArgs;
    client_devices = "PJRT_Client_Devices": ClientDevicesArgs;
    client_addressable_devices = "PJRT_Client_AddressableDevices": ClientAddressableDevicesArgs;
    client_lookup_device = "PJRT_Client_LookupDevice";
    client_lookup_addressable_device = "PJRT_Client_LookupAddressableDevice";
    client_addressable_memories = "PJRT_Client_AddressableMemories";
    client_compile = "PJRT_Client_Compile": ClientCompileArgs;
    client_default_device_assignment = "PJRT_Client_DefaultDeviceAssignment";
    client_buffer_from_host_buffer = "PJRT_Client_BufferFromHostBuffer": ClientBufferFromHostBufferArgs;
    device_description_id = "PJRT_DeviceDescription_Id": DeviceDescriptionIdArgs;
    device_description_process_index = "PJRT_DeviceDescription_ProcessIndex": DeviceDescriptionProcessIndexArgs;
    device_description_attributes = "PJRT_DeviceDescription_Attributes": DeviceDescriptionAttributesArgs;
    device_description_kind = "PJRT_DeviceDescription_Kind": DeviceDescriptionKindArgs;
    device_description_debug_string = "PJRT_DeviceDescription_DebugString": DeviceDescriptionDebugStringArgs;
    device_description_to_string = "PJRT_DeviceDescription_ToString";
    device_get_description = "PJRT_Device_GetDescription": DeviceGetDescriptionArgs;
    device_is_addressable = "PJRT_Device_IsAddressable": DeviceIsAddressableArgs;
    device_local_hardware_id = "PJRT_Device_LocalHardwareId": DeviceLocalHardwareIdArgs;
    device_addressable_memories = "PJRT_Device_AddressableMemories": DeviceAddressableMemoriesArgs;
    device_default_memory = "PJRT_Device_DefaultMemory": DeviceDefaultMemoryArgs;
    device_memory_stats = "PJRT_Device_MemoryStats": DeviceMemoryStatsArgs;
    memory_id = "PJRT_Memory_Id": MemoryIdArgs;
    memory_kind = "PJRT_Memory_Kind": MemoryKindArgs;
    memory_debug_string = "PJRT_Memory_DebugString": MemoryDebugStringArgs;
    memory_to_string = "PJRT_Memory_ToString";
    memory_addressable_by_devices = "PJRT_Memory_AddressableByDevices";
    executable_destroy = "PJRT_Executable_Destroy": ExecutableDestroyArgs;
    executable_name = "PJRT_Executable_Name": ExecutableNameArgs;
    executable_num_replicas = "PJRT_Executable_NumReplicas";
    executable_num_partitions = "PJRT_Executable_NumPartitions";
    executable_num_outputs = "PJRT_Executable_NumOutputs": ExecutableNumOutputsArgs;
    executable_size_of_generated_code_in_bytes = "PJRT_Executable_SizeOfGeneratedCodeInBytes": ExecutableSizeOfGeneratedCodeInBytesArgs;
    executable_get_cost_analysis = "PJRT_Executable_GetCostAnalysis";
    executable_output_memory_kinds = "PJRT_Executable_OutputMemoryKinds";
    executable_optimized_program = "PJRT_Executable_OptimizedProgram": ExecutableOptimizedProgramArgs;
    executable_serialize = "PJRT_Executable_Serialize": ExecutableSerializeArgs;
    loaded_executable_destroy = "PJRT_LoadedExecutable_Destroy": LoadedExecutableDestroyArgs;
    loaded_executable_get_executable = "PJRT_LoadedExecutable_GetExecutable": LoadedExecutableGetExecutableArgs;
    loaded_executable_addressable_devices = "PJRT_LoadedExecutable_AddressableDevices": LoadedExecutableAddressableDevicesArgs;
    loaded_executable_delete = "PJRT_LoadedExecutable_Delete";
    loaded_executable_is_deleted = "PJRT_LoadedExecutable_IsDeleted";
    loaded_executable_execute = "PJRT_LoadedExecutable_Execute": LoadedExecutableExecuteArgs;
    executable_deserialize_and_load = "PJRT_Executable_DeserializeAndLoad": ExecutableDeserializeAndLoadArgs;
    loaded_executable_fingerprint = "PJRT_LoadedExecutable_Fingerprint";
    buffer_destroy = "PJRT_Buffer_Destroy": BufferDestroyArgs;
    buffer_element_type = "PJRT_Buffer_ElementType": BufferElementTypeArgs;
    buffer_dimensions = "PJRT_Buffer_Dimensions": BufferDimensionsArgs;
    buffer_unpadded_dimensions = "PJRT_Buffer_UnpaddedDimensions";
    buffer_dynamic_dimension_indices = "PJRT_Buffer_DynamicDimensionIndices";
    buffer_get_memory_layout = "PJRT_Buffer_GetMemoryLayout";
    buffer_on_device_size_in_bytes = "PJRT_Buffer_OnDeviceSizeInBytes": BufferOnDeviceSizeInBytesArgs;
    buffer_device = "PJRT_Buffer_Device": BufferDeviceArgs;
    buffer_memory = "PJRT_Buffer_Memory": BufferMemoryArgs;
    buffer_delete = "PJRT_Buffer_Delete": BufferDeleteArgs;
    buffer_is_deleted = "PJRT_Buffer_IsDeleted": BufferIsDeletedArgs;
    buffer_copy_to_device = "PJRT_Buffer_CopyToDevice": BufferCopyToDeviceArgs;
    buffer_to_host_buffer = "PJRT_Buffer_ToHostBuffer": BufferToHostBufferArgs;
    buffer_is_on_cpu = "PJRT_Buffer_IsOnCpu": BufferIsOnCpuArgs;
    buffer_ready_event = "PJRT_Buffer_ReadyEvent": BufferReadyEventArgs;
    buffer_unsafe_pointer = "PJRT_Buffer_UnsafePointer": BufferUnsafePointerArgs;
    buffer_increase_external_reference_count = "PJRT_Buffer_IncreaseExternalReferenceCount": BufferIncreaseExternalReferenceCountArgs;
    buffer_decrease_external_reference_count = "PJRT_Buffer_DecreaseExternalReferenceCount": BufferDecreaseExternalReferenceCountArgs;
    buffer_opaque_device_memory_data_pointer = "PJRT_Buffer_OpaqueDeviceMemoryDataPointer";
    copy_to_device_stream_destroy = "PJRT_CopyToDeviceStream_Destroy";
    copy_to_device_stream_add_chunk = "PJRT_CopyToDeviceStream_AddChunk";
    copy_to_device_stream_total_bytes = "PJRT_CopyToDeviceStream_TotalBytes";
    copy_to_device_stream_granule_size = "PJRT_CopyToDeviceStream_GranuleSize";
    copy_to_device_stream_current_bytes = "PJRT_CopyToDeviceStream_CurrentBytes";
    topology_description_create = "PJRT_TopologyDescription_Create": TopologyDescriptionCreateArgs;
    topology_description_destroy = "PJRT_TopologyDescription_Destroy": TopologyDescriptionDestroyArgs;
    topology_description_platform_name = "PJRT_TopologyDescription_PlatformName": TopologyDescriptionPlatformNameArgs;
    topology_description_platform_version = "PJRT_TopologyDescription_PlatformVersion": TopologyDescriptionPlatformVersionArgs;
    topology_description_get_device_descriptions = "PJRT_TopologyDescription_GetDeviceDescriptions": TopologyDescriptionGetDeviceDescriptionsArgs;
    topology_description_serialize = "PJRT_TopologyDescription_Serialize": TopologyDescriptionSerializeArgs;
    topology_description_attributes = "PJRT_TopologyDescription_Attributes";
    compile = "PJRT_Compile": CompileArgs;
    executable_output_element_types = "PJRT_Executable_OutputElementTypes": ExecutableOutputElementTypesArgs;
    executable_output_dimensions = "PJRT_Executable_OutputDimensions": ExecutableOutputDimensionsArgs;
    buffer_copy_to_memory = "PJRT_Buffer_CopyToMemory": BufferCopyToMemoryArgs;
    client_create_view_of_device_buffer = "PJRT_Client_CreateViewOfDeviceBuffer": ClientCreateViewOfDeviceBufferArgs;
    executable_fingerprint = "PJRT_Executable_Fingerprint";
    client_topology_description = "PJRT_Client_TopologyDescription";
    executable_get_compiled_memory_stats = "PJRT_Executable_GetCompiledMemoryStats": ExecutableGetCompiledMemoryStatsArgs;
    memory_kind_id = "PJRT_Memory_Kind_Id";
    execute_context_create = "PJRT_ExecuteContext_Create";
    execute_context_destroy = "PJRT_ExecuteContext_Destroy";
    buffer_copy_raw_to_host = "PJRT_Buffer_CopyRawToHost": BufferCopyRawToHostArgs;
}
