import type { Failure, Segment, TargetEvent } from '#schemas/target.ts';
import { Rejection } from '../decider.ts';
import { claimOf, type NetworkPost, type ScheduledTarget, type TargetIn } from './state.ts';

/** Of a thread each segment goes out by itself, in its order. */

/** @param index of the segment; 0 where the target is no thread */
export const requireNextSegment = ({ common }: ScheduledTarget, index: number): void => {
  const next = common.publishedSegments.length;
  if (index !== next) throw new Rejection('segment_out_of_turn', `Segment ${next} of the thread is next.`);
};

export interface SegmentOut {
  readonly event: TargetEvent;
  /** The first segment, as which the network knows the whole thread, once the last one is out; null: another is next. */
  readonly head: NetworkPost | null;
}

/** What it means for the whole thread that one segment is out. */
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
 * The failure of a thread says which segments are out.
 * @param segmentIndex the segment at fault; absent: the next one
 */
export const failureOfThread = ({ common }: ScheduledTarget, failure: Failure, segmentIndex?: number): Failure => {
  const out = common.publishedSegments.length;
  if (out === 0 && segmentIndex === undefined) return failure;
  const these = out === 1 ? 'Segment 1 of the thread is out' : `Segments 1 to ${out} of the thread are out`;
  const which = `of segment ${(segmentIndex ?? out) + 1}: ${failure.message}`;
  const message = out === 0 ? `Nothing of the thread is out; ${which}` : `${these}; ${which}`;
  return { ...failure, message: message.slice(0, 2_000).toWellFormed() };
};
