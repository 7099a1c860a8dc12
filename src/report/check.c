#include "report/check.h"

#include "report/fields.h"

static void put_place(cJSON *object, const fa_place *place)
{
    put(object, "batch", place->batch);
    put(object, "head", place->head);
    put(object, "row", place->row);
}

/* Of an element. */
static void put_worst(cJSON *object, const fa_place *place)
{
    cJSON *worst = object_in(object, "worst");
    put_place(worst, place);
    put(worst, "col", place->col);
}

static cJSON *verdict_json(const fa_verdict *v)
{
    cJSON *reference = cJSON_CreateObject();
    cJSON_AddStringToObject(reference, "name", v->name);
    cJSON_AddBoolToObject(reference, "passed", v->passed);
    put(reference, "rows_checked", (double)v->rows_checked);
    put(reference, "max_abs_err", v->max_abs_err);
    put(reference, "rmse", v->rmse);
    put(reference, "worst_row_rel_l2", v->worst_row_rel_l2);
    put(reference, "baseline_max_abs_err", v->baseline_max_abs_err);
    put(reference, "baseline_rmse", v->baseline_rmse);
    put(reference, "baseline_worst_row_rel_l2", v->baseline_worst_row_rel_l2);
    cJSON_AddStringToObject(reference, "fixed_rule", v->baseline_fails ? "baseline_fails" : "applies");
    put(reference, "mismatches", (double)v->mismatches);
    put(reference, "nonfinite", (double)v->nonfinite);
    put_worst(reference, &v->worst);
    put_text(reference, "failure", v->failure);
    return reference;
}

/* Of --op backward: a verdict for each tensor and reference. */
static void put_gradients(cJSON *check, const fa_check_result *c)
{
    cJSON *gradients = cJSON_AddArrayToObject(check, "gradients");
    for (int32_t i = 0; i < c->gradient_count; i++) {
        const fa_gradient_verdict *v = &c->gradients[i];
        cJSON *of = cJSON_CreateObject();
        cJSON_AddItemToArray(gradients, of);
        cJSON_AddStringToObject(of, "tensor", v->tensor);
        cJSON_AddStringToObject(of, "reference", v->reference);
        cJSON_AddBoolToObject(of, "passed", v->passed);
        put(of, "rows_checked", (double)v->rows_checked);
        put(of, "rms", v->rms);
        put(of, "nrmse", v->rms > 0 ? v->rmse / v->rms : NAN);
        put(of, "nrmse_limit", v->rms > 0 ? v->rmse_limit / v->rms : NAN);
        put(of, "rmse", v->rmse);
        put(of, "max_abs_err", v->max_abs_err);
        put(of, "worst_row_rel_l2", v->worst_row_rel_l2);
        put(of, "baseline_rmse", v->baseline_rmse);
        put(of, "baseline_max_abs_err", v->baseline_max_abs_err);
        cJSON_AddStringToObject(of, "fixed_rule", v->baseline_fails ? "baseline_fails" : "applies");
        put(of, "mismatches", (double)v->mismatches);
        put(of, "nonfinite", (double)v->nonfinite);
        put(of, "repeats_max_abs", v->repeats_max_abs);
        put_worst(of, &v->worst);
        put_text(of, "failure", v->failure);
    }
}

static void put_lse(cJSON *check, const fa_lse_verdict *v)
{
    cJSON *lse = object_if(v->done, check, "lse");
    if (lse == NULL)
        return;
    cJSON_AddBoolToObject(lse, "passed", v->passed);
    put(lse, "atol", v->atol);
    put(lse, "rtol", FA_LSE_RTOL);
    put(lse, "rows_checked", (double)v->rows_checked);
    put(lse, "max_abs_err", v->max_abs_err);
    put(lse, "baseline_max_abs_err", v->baseline_max_abs_err);
    put(lse, "mismatches", (double)v->mismatches);
    put(lse, "nonfinite", (double)v->nonfinite);
    put_place(object_in(lse, "worst"), &v->worst);
    put_text(lse, "failure", v->failure);
}

static void put_published(cJSON *check, const fa_published_verdict *v, bool lse)
{
    cJSON *published = object_if(v->done, check, "published");
    if (published == NULL)
        return;
    const fa_tolerance *t = &v->tolerance;
    cJSON_AddStringToObject(published, "rule", fa_tolerance_name(t));
    cJSON_AddBoolToObject(published, "passed", v->passed);
    put(published, "atol", t->atol);
    put(published, "rtol", t->rtol);
    put(published, "required_matched_ratio", t->matched_ratio);
    put(published, "max_error_cap", t->error_cap);
    cJSON_AddBoolToObject(published, "allow_negative_inf", t->allow_negative_inf);
    put(published, "matched_ratio", v->matched_ratio);
    put(published, "lse_matched_ratio", lse ? v->lse_matched_ratio : INFINITY);
    put(published, "max_abs_err", v->max_abs_err);
    put_text(published, "failure", v->failure);
}

/* What each seed drew: distribution, scale, layout. */
static void put_draws(cJSON *check, const fa_check_result *c, double scale)
{
    cJSON *draws = cJSON_AddArrayToObject(check, "draws");
    for (int32_t i = 0; i < c->draw_count; i++) {
        const fa_draw *d = &c->draws[i];
        cJSON *draw = cJSON_CreateObject();
        put(draw, "seed", (double)d->seed);
        cJSON_AddBoolToObject(draw, "as_asked", d->as_asked);
        cJSON_AddBoolToObject(draw, "given", d->given);
        put_word(draw, "dist", FA_DIST_WORDS, d->dist);
        put(draw, "scale", scale * (double)d->factor);
        put(draw, "v_scale", ldexp(1.0, d->v_power));
        cJSON_AddBoolToObject(draw, "flat", d->flat);
        put_word(draw, "strides", FA_STRIDES_WORDS, d->strides);
        put(draw, "max_abs_err", d->max_abs_err);
        cJSON_AddItemToArray(draws, draw);
    }
}

void fa_report_check(cJSON *record, const fa_check_result *c, const fa_problem *problem)
{
    cJSON *check = object_if(c->done, record, "check");
    if (check == NULL)
        return;
    cJSON_AddBoolToObject(check, "passed", c->passed);
    put(check, "seeds", c->seeds);
    put(check, "atol", c->atol);
    put(check, "rtol", c->rtol);
    cJSON_AddBoolToObject(check, "loosened", c->loosened);
    put(check, "repeats", c->repeats);
    put_text(check, "unrepeated", c->unrepeated);
    cJSON *references = cJSON_AddArrayToObject(check, "references");
    for (int32_t i = 0; i < c->verdict_count; i++)
        cJSON_AddItemToArray(references, verdict_json(&c->verdicts[i]));
    put_gradients(check, c);
    put_lse(check, &c->lse);
    put_published(check, &c->published, c->lse.done);
    put_draws(check, c, (double)problem->scale);
    put_text(check, "missing", c->missing);
    put_text(check, "failure", c->failure);
}
