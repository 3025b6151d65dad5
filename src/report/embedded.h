/* Files of the source tree that the program hands out; cmake/embed.cmake makes them C. */
#ifndef ONV_REPORT_EMBEDDED_H
#define ONV_REPORT_EMBEDDED_H

extern const char onv_recompute_py[]; /* python/onnxvram/recompute.py */

#endif
