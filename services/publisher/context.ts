import type { NativeScheduler, PlatformAdapter } from '#contracts/ports/platform.ts';
import type { ScheduledTarget } from '#domain/target.ts';
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

/** Null: this installation has no adapter for the account's network. */
export const adapterOf = (
  { tools }: WorkContext,
  target: ScheduledTarget,
  { account: { state } }: Conditions,
): PlatformAdapter | null => (state.status === 'none' ? null : tools.adapterOf(state.network, target.common.platform));

/** Null: the target is not for the network's own scheduler. `missing`: it is, and the adapter has none. */
export const schedulerOf = (
  adapter: PlatformAdapter,
  { common }: ScheduledTarget,
): NativeScheduler | null | 'missing' =>
  common.scheduleMode === 'native' ? (adapter.nativeScheduler?.(common.platform) ?? 'missing') : null;
