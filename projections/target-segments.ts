import type { SegmentStatus, TargetStatus } from '#schemas/target.ts';

/** The segments of a thread as a target shows them. The row holds those that are out; the status says the rest. */

interface SegmentOut {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly publishedAt: string;
}

/** Segments that are out, in order, and how many the thread has. */
export interface SegmentsOut {
  readonly of: number;
  readonly out: readonly SegmentOut[];
}

/** Status of the first segment that is not out, and of each later one. */
const restOf: Readonly<Record<TargetStatus, readonly [next: SegmentStatus, later: SegmentStatus]>> = {
  awaiting_approval: ['pending', 'pending'],
  pending: ['pending', 'pending'],
  handed_to_platform: ['pending', 'pending'],
  publishing: ['publishing', 'pending'],
  published: ['published', 'published'],
  failed: ['failed', 'failed'],
  rate_limited: ['pending', 'pending'],
  canceled: ['canceled', 'canceled'],
  outcome_unknown: ['outcome_unknown', 'pending'],
};

export const addSegment = (
  known: SegmentsOut | null,
  { segment, externalId, permalink, publishedAt }: SegmentOut & { readonly segment: { readonly of: number } },
): SegmentsOut => ({ of: segment.of, out: [...(known?.out ?? []), { externalId, permalink, publishedAt }] });

/** @param composed segments of the post's content; once a segment is out, the events say how many there are */
export const renderSegments = (status: TargetStatus, known: SegmentsOut | null, composed: number) => {
  const { of, out } = known ?? { of: composed, out: [] };
  if (of === 1) return [];
  const [next, later] = restOf[status];
  return Array.from({ length: of }, (_none, index) => {
    const post = out[index];
    return {
      index,
      status: post !== undefined ? 'published' : index === out.length ? next : later,
      externalId: post?.externalId ?? null,
      permalink: post?.permalink ?? null,
      publishedAt: post?.publishedAt ?? null,
    };
  });
};
