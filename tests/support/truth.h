/* Truth files: what ONNX Runtime measured of a model, as scripts/export/ort_truth.py writes it.
 *
 * `NAME.KEY.truth.json` names a model file and the sizes of its symbols; it holds the shapes of all
 * values, those in functions and subgraphs included, the ideal peak, and totals of weights and nodes.
 * What the program calls a bound has to be one, of a size and of the peak. The comparison goes through the public header only.
 */
#ifndef ONV_TESTS_TRUTH_H
#define ONV_TESTS_TRUTH_H

/* Every truth file of a folder; fails the test where a model, looked for in `models`, disagrees. */
void truth_check_folder(const char *truths, const char *models);

#endif
