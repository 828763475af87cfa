import { considerPlan, type PlanInput } from '#domain/post/scheduling.ts';
import type { Plan } from '#schemas/post.ts';

/** @throws Rejection the first reason for which the plan is refused */
export const planOf = (input: PlanInput): Plan => {
  const { plan, refusals } = considerPlan(input);
  const [first] = refusals;
  if (first !== undefined) throw first;
  return plan;
};
