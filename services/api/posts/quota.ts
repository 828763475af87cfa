import type { PostCommand } from '#domain/post/post.ts';
import { type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import { postingRulesOf } from '#projections/queries/posting-rules.ts';
import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { tendPlaces } from '#services/workflows/quota/give-back.ts';
import { type Placed, type Reserving, reserveForTarget, reservePlaces } from '#services/workflows/quota/reserve.ts';
import { requireCadence } from '../cadence/moves.ts';
import type { Call } from '../operation.ts';

/** The places that the posts of a call take, and give back, of the quota of its workspace. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'context'>;

export const reservingOf = async (call: Asking, context: CommandContext = call.context): Promise<Reserving> => ({
  store: call.deps.store,
  pool: call.deps.pool,
  context,
  rules: await postingRulesOf(call.deps.pool, call.workspaceId),
});

/** Takes the places of a plan right before its append behind this revision. @throws Rejection `quota_exceeded` */
export const reservePlan = async (
  call: Asking,
  postId: string,
  command: PostCommand,
  revision: number,
): Promise<void> => {
  if (command.type !== 'Schedule') return;
  await reserveBehind(call, postId, revision, command.plan.targets);
};

/** @throws Rejection `quota_exceeded` */
export const reserveBehind = async (
  call: Asking,
  postId: string,
  revision: number,
  targets: readonly Placed[],
): Promise<void> => {
  const by = await reservingOf(call);
  await reservePlaces(by, { postId, awaits: { stream: 'post', revision }, targets });
};

/** Checks the new time of a target, and takes the place that it needs. @throws Rejection `cadence_exceeded`, `quota_exceeded` */
export const reserveFor = async (
  call: Asking & Pick<Call, 'behind'>,
  loaded: Loaded<TargetState>,
  command: TargetCommand,
): Promise<void> => {
  await requireCadence(call, loaded.state, command);
  const by = await reservingOf(call);
  if (by.rules.quota !== null) await reserveForTarget(by, loaded, target.decide(command, loaded.state));
};

/**
 * Gives back the places that these targets of one post no longer need. If we die before this, or it fails, the consumer
 * of outcomes does the same for each target.
 */
export const giveBackOrLeave = async (
  call: Asking & Pick<Call, 'correlationId'>,
  postId: string,
  targetIds: readonly string[],
): Promise<void> => {
  const { deps, workspaceId, context, correlationId } = call;
  try {
    const rules = await postingRulesOf(deps.pool, workspaceId);
    if (rules.quotaRevision === null) return;
    faultPoint('quota:before-give-back');
    await tendPlaces({ store: deps.store, context, rules }, postId, targetIds);
  } catch (error) {
    deps.logger.warn({ err: error, postId, correlationId }, 'the places of these targets are left to the outcomes');
  }
};
