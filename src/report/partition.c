/* Bytes by node, as ONNX Runtime's partitioning by resources reads them. */
#include <string.h>

#include "base/fail.h"
#include "report/format.h"

onv_status onv_format_ort_partition_write(const onv_report_job *job)
{
    const onv_ort_node_stats *stats = &job->views[0]->node_stats;
    if (job->count > 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "statistics by node are of one model at a time");
    if (stats->rows == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE, "statistics by node were not asked for");
    onv_write_text(job->out, "#name,input_sizes,initializers_sizes,total_dynamic_sizes,"
                             "total_temp_allocations\n");
    for (uint32_t i = 0; i < stats->count && !job->out->failed; i++) {
        const onv_ort_node_stat *row = &stats->rows[i];
        /* A name as it is: ONNX Runtime looks it up. One such line and it refuses the file. */
        if (strpbrk(row->name, ",\r\n") != NULL)
            return onv_fail(job->err, ONV_ERR_MODEL,
                            "the name of node '%s' has a comma or a line break, and ONNX Runtime "
                            "cannot read statistics with such names: rename the node",
                            row->name);
        onv_write_text(job->out, row->name);
        onv_write_format(job->out, "_%llu,%llu,0,%llu,%llu\n", (unsigned long long)row->hash,
                         (unsigned long long)row->input_bytes,
                         (unsigned long long)row->dynamic_bytes,
                         (unsigned long long)row->temporary_bytes);
    }
    return ONV_OK;
}
