/* Known hard instances, where the data is at hand ($ONV_TEST_DATA/dsa). */
#include <unistd.h>

#include "plan/plan.h"
#include "support/test.h"

/* Plans the file and checks the plan; skips the test where there is no such file. */
static onv_plan plan_file(const char *name, uint64_t capacity)
{
    const char *folder = getenv("ONV_TEST_DATA");
    if (folder == NULL) skip();
    char path[1024];
    snprintf(path, sizeof path, "%s/dsa/%s", folder, name);
    if (access(path, R_OK) != 0) skip();
    onv_plan_table table;
    onv_plan plan;
    onv_error err = {0};
    onv_plan_options options = {.capacity = capacity};
    if (onv_plan_csv_read(path, &table, &err) != ONV_OK ||
        onv_plan_compute(table.buffers, table.count, &options, &plan, &err) != ONV_OK ||
        onv_plan_check(table.buffers, table.count, &options, &plan, &err) != ONV_OK)
        fail_msg("%s: %s", name, err.message);
    onv_plan_table_cleanup(&table);
    onv_plan_cleanup(&(onv_plan){.offsets = plan.offsets});
    plan.offsets = NULL;
    return plan;
}

TEST(the_six_fit_their_capacity)
{
    static const char *const names[] = {"A.1048576.csv", "B.1048576.csv", "C.1048576.csv",
                                        "D.1048576.csv", "E.1048576.csv", "F.1048576.csv"};
    uint64_t work = 0;
    for (int i = 0; i < 6; i++) {
        onv_plan plan = plan_file(names[i], 1048576);
        assert_true(plan.fits);
        work += plan.work;
    }
    assert_true(work < 200000000); /* some 0.3 s */
}

/* The rest of the set, where it is at hand too. */
TEST(the_other_five_fit_their_capacity)
{
    static const char *const names[] = {"G.1048576.csv", "H.1048576.csv", "I.1048576.csv",
                                        "J.1048576.csv", "K.1048576.csv"};
    for (int i = 0; i < 5; i++) assert_true(plan_file(names[i], 1048576).fits);
}

TEST(the_optimum_is_proved)
{
    onv_plan plan = plan_file("C.1048576.csv", 0);
    assert_int_equal(plan.height, 1039360);
    assert_true(plan.optimal);
    plan = plan_file("F.1048576.csv", 0);
    assert_int_equal(plan.height, 1048576);
    assert_true(plan.optimal);
    plan = plan_file("D.1048576.csv", 0); /* the optimum is not known */
    assert_true(plan.height <= 997376);
}

TEST(a_real_graph_reaches_its_bound)
{
    onv_plan plan = plan_file("somas_resnet50.csv", 0);
    assert_int_equal(plan.height, 1515472556);
    assert_true(plan.optimal);
    assert_true(plan.work < 120000000);
}
