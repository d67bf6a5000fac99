/* The shared library of plt_lazy and plt_now. */
#ifndef WORKLOAD_PLT_LIB_H
#define WORKLOAD_PLT_LIB_H

int lib_add(int a, int b);

/* calls lib_add through the library's own PLT, as the program could have replaced it */
int lib_sum(int n);

/* calls main_callback, which the program defines */
int lib_call_back(int n);

int main_callback(int n);

#endif
