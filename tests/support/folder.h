/* Fixtures of a group of tests: a temporary folder to work in, and its end. */
#ifndef ONV_TESTS_FOLDER_H
#define ONV_TESTS_FOLDER_H

int folder_enter(void **state);
int folder_leave(void **state);

#endif
