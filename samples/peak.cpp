// The peak of a model and what stands in memory at that moment.
//
//     c++ -std=c++17 peak.cpp -o peak $(pkg-config --cflags --libs onnxvram)
//     ./peak resnet50.onnx 256
#include <cstdlib>
#include <iostream>
#include <memory>
#include <onnxvram/onnxvram.h>
#include <stdexcept>
#include <vector>

namespace
{

struct destroy {
    void operator()(onv_analysis *analysis) const
    {
        onv_analysis_destroy(analysis);
    }
};
using analysis_ptr = std::unique_ptr<onv_analysis, destroy>;

analysis_ptr analyze(const char *path, const onv_options &options)
{
    onv_analysis *analysis = nullptr;
    onv_error error{};
    if (onv_analysis_new(path, &options, &analysis, &error) != ONV_OK)
        throw std::runtime_error(error.message);
    return analysis_ptr(analysis);
}

// What is live at the peak, the largest first.
std::vector<onv_tensor_info> peak_tensors(const onv_analysis *analysis)
{
    std::vector<onv_tensor_info> found(onv_analysis_peak_tensor_count(analysis));
    for (size_t i = 0; i < found.size(); i++)
        onv_analysis_tensor(analysis, onv_analysis_peak_tensor(analysis, i), &found[i]);
    return found;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::cerr << "usage: " << argv[0] << " MODEL.onnx [BATCH]\n";
        return 2;
    }
    onv_options options = onv_options_default();
    if (argc > 2) options.batch = std::strtoll(argv[2], nullptr, 10);
    try {
        analysis_ptr analysis = analyze(argv[1], options);
        onv_summary summary{};
        onv_analysis_summary(analysis.get(), &summary);
        std::cout << "weights " << summary.parameter_bytes << " bytes\n"
                  << "peak    " << summary.peak_bytes << " bytes at step " << summary.peak_step
                  << " of " << summary.nodes << "\n";
        auto tensors = peak_tensors(analysis.get());
        for (size_t i = 0; i < tensors.size() && i < 3; i++)
            std::cout << "        " << tensors[i].bytes << " bytes: " << tensors[i].name << " "
                      << tensors[i].dtype << tensors[i].shape << "\n";
    } catch (const std::exception &error) {
        std::cerr << argv[1] << ": " << error.what() << "\n";
        return 1;
    }
}
