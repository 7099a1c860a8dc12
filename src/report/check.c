#include "report/check.h"

#include "report/fields.h"

static void put_place(cJSON *object, const fa_place *place) { PUT_FIELDS(object, place, batch, head, row); }

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
    PUT_FIELDS(reference, v, name, passed, rows_checked, max_abs_err, rmse, worst_row_rel_l2, baseline_max_abs_err,
               baseline_rmse, baseline_worst_row_rel_l2);
    cJSON_AddStringToObject(reference, "fixed_rule", v->baseline_fails ? "baseline_fails" : "applies");
    PUT_FIELDS(reference, v, mismatches, nonfinite);
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
        PUT_FIELDS(of, v, tensor, reference, passed, rows_checked, rms);
        put(of, "nrmse", v->rms > 0 ? v->rmse / v->rms : NAN);
        put(of, "nrmse_limit", v->rms > 0 ? v->rmse_limit / v->rms : NAN);
        PUT_FIELDS(of, v, rmse, max_abs_err, worst_row_rel_l2, baseline_rmse, baseline_max_abs_err);
        cJSON_AddStringToObject(of, "fixed_rule", v->baseline_fails ? "baseline_fails" : "applies");
        PUT_FIELDS(of, v, mismatches, nonfinite, repeats_max_abs);
        put_worst(of, &v->worst);
        put_text(of, "failure", v->failure);
    }
}

static void put_lse(cJSON *check, const fa_lse_verdict *v)
{
    cJSON *lse = object_if(v->done, check, "lse");
    if (lse == NULL)
        return;
    PUT_FIELDS(lse, v, passed, atol, rtol, rows_checked, max_abs_err, baseline_max_abs_err, mismatches, nonfinite);
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
    PUT_FIELDS(published, t, atol, rtol);
    put(published, "required_matched_ratio", t->matched_ratio);
    put(published, "max_error_cap", t->error_cap);
    cJSON_AddBoolToObject(published, "allow_negative_inf", t->allow_negative_inf);
    put(published, "matched_ratio", v->matched_ratio);
    put(published, "lse_matched_ratio", lse ? v->lse_matched_ratio : INFINITY);
    PUT_FIELDS(published, v, max_abs_err, failure);
}

/* What each seed drew: distribution, scale, layout. */
static void put_draws(cJSON *check, const fa_check_result *c, double scale)
{
    cJSON *draws = cJSON_AddArrayToObject(check, "draws");
    for (int32_t i = 0; i < c->draw_count; i++) {
        const fa_draw *d = &c->draws[i];
        cJSON *draw = cJSON_CreateObject();
        put(draw, "seed", (double)d->seed);
        PUT_FIELDS(draw, d, as_asked, given);
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
    PUT_FIELDS(check, c, passed, seeds, atol, rtol, loosened, repeats, unrepeated);
    cJSON *references = cJSON_AddArrayToObject(check, "references");
    for (int32_t i = 0; i < c->verdict_count; i++)
        cJSON_AddItemToArray(references, verdict_json(&c->verdicts[i]));
    put_gradients(check, c);
    put_lse(check, &c->lse);
    put_published(check, &c->published, c->lse.done);
    put_draws(check, c, (double)problem->scale);
    PUT_FIELDS(check, c, missing, failure);
}
