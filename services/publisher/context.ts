import type { NativeScheduler, PlatformAdapter } from '#contracts/ports/platform.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import { apiVersionEnded, publishingHeld } from '#domain/publish-failures.ts';
import { behindWall } from '#runtime/work/publishing-wall.ts';
import type { Failure } from '#schemas/target.ts';
import type { Tools } from './deps.ts';
import type { LeasedTarget } from './leased-target.ts';
import { type MediaReadiness, noFiles, readinessOf, type TargetFiles } from './media-readiness.ts';
import type { Conditions, RelatedStreams, TargetConditions } from './related-streams.ts';

/** What every step of one target's work needs. */
export interface WorkContext {
  readonly tools: Tools;
  readonly streams: RelatedStreams;
  readonly leased: LeasedTarget;
  readonly conditions: TargetConditions;
  /** `live/linkedin`. */
  readonly network: string;
  /** Aborts when the process drains. */
  readonly draining: AbortSignal;
}

/** An attempt of which this worker has the claim. */
export type OwnAttempt =
  /** The worker has not read the files. */
  | { readonly kind: 'taken_over' }
  /** The files were ready. A finished rendition is never taken back, so the worker keeps them. */
  | { readonly kind: 'prepared'; readonly files: TargetFiles };

/** `none`: this worker has no claim. If the target is publishing, a worker that is gone claimed it. */
export type Attempt = { readonly kind: 'none' } | OwnAttempt;

/** Whether the files of the unpublished segments are ready. A post without files costs no read. */
export const mediaReadiness = async (
  { streams, leased }: WorkContext,
  target: ScheduledTarget,
): Promise<MediaReadiness> => {
  const content = await streams.content(target);
  if (content.body === null) return noFiles;
  const from = target.common.publishedSegments.length;
  const assets = await streams.media(content, from);
  const { workspaceId } = leased.context();
  return readinessOf({ ...content, body: content.body }, from, target.common.platform, workspaceId, assets);
};

/**
 * Why nothing of the target goes out now: an operator holds its workspace, or its network rests. Null: it may. Who cannot read
 * it lets nothing out either.
 */
export const heldBy = async ({ tools, leased, network }: WorkContext): Promise<Failure | null> => {
  try {
    if ((await tools.hold.of(leased.context().workspaceId)) !== null) return publishingHeld;
    const rest = await tools.networkRests.of(network);
    return rest === null ? null : { ...apiVersionEnded, platformMessage: rest.said };
  } catch (error) {
    tools.logger.warn({ err: error }, 'whether publishing is held is not known; nothing goes out until it is');
    return publishingHeld;
  }
};

export const isHeld = async (context: WorkContext): Promise<boolean> => (await heldBy(context)) !== null;

/**
 * Whether the network has said that it no longer answers the version it is asked for. It then rests as a whole, before this is
 * recorded for the target: the worker that finds the target again does not call.
 */
export const hasEndedVersion = async ({ tools, network }: WorkContext, outcome: object): Promise<boolean> => {
  const failure = 'failure' in outcome ? (outcome.failure as Failure) : null;
  if (failure?.code !== apiVersionEnded.code) return false;
  await tools.networkRests.rest(network, failure.platformMessage ?? failure.message);
  return true;
};

/**
 * The adapter behind the wall of held publishing; no work on a target calls another. Null: this installation has no
 * adapter for the account's network.
 */
export const adapterOf = (
  context: WorkContext,
  target: ScheduledTarget,
  { account: { state } }: Conditions,
): PlatformAdapter | null => {
  if (state.status === 'none') return null;
  const adapter = context.tools.adapterOf(state.network, target.common.platform);
  return adapter && behindWall(adapter, () => isHeld(context));
};

/** Null: the target is not for the network's own scheduler. `missing`: it is, and the adapter has none. */
export const schedulerOf = (
  adapter: PlatformAdapter,
  { common }: ScheduledTarget,
): NativeScheduler | null | 'missing' =>
  common.scheduleMode === 'native' ? (adapter.nativeScheduler?.(common.platform) ?? 'missing') : null;
