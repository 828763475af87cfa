import type { Failure, Segment, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { claimOf, type NetworkPost, type ScheduledTarget, type TargetIn } from './state.ts';

/** The publisher publishes the segments of a thread one by one, in order. */

/** @param index of the segment; 0 where the target is no thread */
export const requireNextSegment = ({ common }: ScheduledTarget, index: number): void => {
  const next = common.publishedSegments.length;
  if (index !== next) throw new Rejection('segment_out_of_turn', `Segment ${next} of the thread is next.`);
};

export interface SegmentOut {
  readonly event: TargetEvent;
  /** After the last segment: the first one, whose id names the thread on the network. Null: another segment is next. */
  readonly head: NetworkPost | null;
}

/** The event of a published segment, and whether the segment ends the thread. */
export const segmentOut = (
  target: TargetIn<'publishing'> | TargetIn<'outcome_unknown'>,
  segment: Segment,
  post: NetworkPost,
): SegmentOut => {
  requireNextSegment(target, segment.index);
  const { externalId, permalink, publishedAt } = post;
  return {
    event: {
      type: 'TargetSegmentPublished',
      data: { ...claimOf(target), segment, externalId, permalink, publishedAt },
    },
    head: segment.index + 1 < segment.of ? null : (target.common.publishedSegments[0] ?? post),
  };
};

/**
 * The failure of a thread names the published segments.
 * @param segmentIndex the failed segment; absent: the next one
 */
export const failureOfThread = ({ common }: ScheduledTarget, failure: Failure, segmentIndex?: number): Failure => {
  const out = common.publishedSegments.length;
  if (out === 0 && segmentIndex === undefined) return failure;
  const these = out === 1 ? 'Segment 1 of the thread is out' : `Segments 1 to ${out} of the thread are out`;
  const which = `of segment ${(segmentIndex ?? out) + 1}: ${failure.message}`;
  const message = out === 0 ? `Nothing of the thread is out; ${which}` : `${these}; ${which}`;
  return { ...failure, message: message.slice(0, 2_000).toWellFormed() };
};
