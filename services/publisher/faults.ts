import type { AccountState } from '#domain/account.ts';
import { publishCheck } from '#domain/platforms/index.ts';
import type { ScheduledTarget } from '#domain/post-target/target.ts';
import { disconnected, reauthRequired, threadInterrupted } from '#domain/publish-failures.ts';
import type { Failure } from '#schemas/target.ts';
import type { TargetFiles } from './media-readiness.ts';
import type { Conditions, Content } from './related-streams.ts';
import { overridesOf } from './request.ts';

/** Why a target cannot go out. */
export interface Fault {
  readonly failure: Failure;
  /** The segment of a thread that is at fault. */
  readonly segmentIndex?: number | undefined;
}

/** Null: the account can publish. */
export const accountFault = (state: AccountState): Fault | null => {
  if (state.status === 'connected') return null;
  return { failure: state.status === 'reauth_required' ? reauthRequired : disconnected };
};

/** A thread that has begun to go out ends when its client is archived, also in the middle of an attempt. */
export const interruption = (target: ScheduledTarget, { client }: Conditions): Fault | null =>
  target.common.publishedSegments.length > 0 && client.state.status !== 'live' ? { failure: threadInterrupted } : null;

/** No segment of a thread goes out while the network's rules refuse a later one. */
export const contentFault = (target: ScheduledTarget, content: Content, files: TargetFiles): Fault | null => {
  const { platform } = target.common;
  for (const [index, { content: text }] of content.segments.entries()) {
    if (index < target.common.publishedSegments.length) continue;
    const overrides = overridesOf(target, content, index);
    const failure = publishCheck({ platform, content: text, overrides, media: files[index]?.gate ?? [] });
    if (failure !== null) return content.segments.length === 1 ? { failure } : { failure, segmentIndex: index };
  }
  return null;
};
