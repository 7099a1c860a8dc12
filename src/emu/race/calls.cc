/* A plugin of g++, for the kernels that the race detector watches: in f(a[i]) and a[i] = f(), structs by value, g++ makes
 * no hook for a[i]. Here they become tmp = a[i], f(tmp) and tmp = f(), a[i] = tmp, before anything is inlined. */
#include "gcc-plugin.h"

#include "tree.h"

#include "context.h"
#include "gimple.h"
#include "gimple-iterator.h"
#include "gimple-walk.h"
#include "gimplify.h"
#include "plugin-version.h"
#include "tree-pass.h"

int plugin_is_GPL_compatible;

/* A struct that other threads may see, and that is copied as bytes: others go by their address. */
static bool in_memory(tree place)
{
    if (place == NULL_TREE || is_gimple_reg_type(TREE_TYPE(place)) || TREE_ADDRESSABLE(TREE_TYPE(place)) ||
        TREE_THIS_VOLATILE(place) || !tree_fits_uhwi_p(TYPE_SIZE_UNIT(TREE_TYPE(place))) || !is_gimple_lvalue(place))
        return false;
    tree base = get_base_address(place);
    return base != NULL_TREE && (!DECL_P(base) || is_global_var(base));
}

static tree copy(gimple_stmt_iterator *at, tree place, bool load)
{
    tree copied = create_tmp_var(TYPE_MAIN_VARIANT(TREE_TYPE(place)), "by_value");
    gassign *assign = load ? gimple_build_assign(copied, unshare_expr(place)) : gimple_build_assign(place, copied);
    gimple_set_location(assign, gimple_location(gsi_stmt(*at)));
    if (load)
        gsi_insert_before(at, assign, GSI_SAME_STMT);
    else
        gsi_insert_after(at, assign, GSI_CONTINUE_LINKING);
    return copied;
}

static tree visit(gimple_stmt_iterator *at, bool *handled, walk_stmt_info *)
{
    gimple *statement = gsi_stmt(*at);
    *handled = false;
    if (!is_gimple_call(statement) || gimple_call_internal_p(statement))
        return NULL_TREE;
    for (unsigned i = 0; i < gimple_call_num_args(statement); i++)
        if (in_memory(gimple_call_arg(statement, i)))
            gimple_call_set_arg(statement, i, copy(at, gimple_call_arg(statement, i), true));
    tree result = gimple_call_lhs(statement);
    if (in_memory(result))
        gimple_call_set_lhs(statement, copy(at, result, false));
    return NULL_TREE;
}

struct split_calls : gimple_opt_pass {
    explicit split_calls(const pass_data &data) : gimple_opt_pass(data, g) {}
    unsigned execute(function *f) final
    {
        gimple_seq body = gimple_body(f->decl);
        walk_stmt_info info = {};
        walk_gimple_seq_mod(&body, visit, NULL, &info);
        gimple_set_body(f->decl, body);
        return 0;
    }
};

int plugin_init(plugin_name_args *self, plugin_gcc_version *version)
{
    if (!plugin_default_version_check(version, &gcc_version))
        return 1;
    const pass_data data = {GIMPLE_PASS, "split_calls", OPTGROUP_NONE, TV_NONE, PROP_gimple_any, 0, 0, 0, 0};
    register_pass_info pass = {new split_calls(data), "lower", 1, PASS_POS_INSERT_BEFORE};
    register_callback(self->base_name, PLUGIN_PASS_MANAGER_SETUP, NULL, &pass);
    return 0;
}
