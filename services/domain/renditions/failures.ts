import { lazy } from '#domain/lazy.ts';
import { rulesOf } from '#domain/platforms/registry.ts';
import type { MediaKind, MediaNeed, MediaUse } from '#schemas/media.ts';
import type { Unfitting } from './plan.ts';

/** Failures of a file for a network. Each message names the network, its limit and the file's value. */

export const places: Readonly<Record<MediaUse, string>> = {
  feed: '',
  carousel: ' in a carousel',
  reel: ' as a reel',
  story: ' in a story',
  cover: ' as a cover',
};
const number = lazy(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 3 }));
const seconds = (ms: number): string => `${number().format(ms / 1000)} s`;
const megabytes = (bytes: number): string => `${number().format(Math.round(bytes / 10_000) / 100)} MB`;

const takes = ({ platform, use }: MediaNeed, kind: MediaKind): string =>
  `${rulesOf(platform).name} takes ${kind}s${places[use]}`;

export const notTaken = (need: MediaNeed, kind: MediaKind): Unfitting => ({
  code: 'media_kind_not_taken',
  message: `${rulesOf(need.platform).name} takes no ${kind}s${places[need.use]}`,
});

export const tooLong = (need: MediaNeed, kind: MediaKind, maxMs: number, durationMs: number): Unfitting => ({
  code: 'media_too_long',
  message: `${takes(need, kind)} of at most ${seconds(maxMs)}; this one has ${seconds(durationMs)}`,
});

export const tooShort = (need: MediaNeed, kind: MediaKind, minMs: number, durationMs: number): Unfitting => ({
  code: 'media_too_short',
  message: `${takes(need, kind)} of at least ${seconds(minMs)}; this one has ${seconds(durationMs)}`,
});

export const tooHeavy = (need: MediaNeed, kind: MediaKind, maxBytes: number, durationMs: number): Unfitting => ({
  code: 'media_too_heavy',
  message: `${takes(need, kind)} of at most ${megabytes(maxBytes)}; ${seconds(durationMs)} cannot be made that small and still be seen`,
});

export const fileTooHeavy = (need: MediaNeed, kind: MediaKind, maxBytes: number, bytes: number): Unfitting => ({
  code: 'media_too_heavy',
  message: `${takes(need, kind)} of at most ${megabytes(maxBytes)}; this one has ${megabytes(bytes)}`,
});

export const tooSmall = (need: MediaNeed, width: number, height: number): Unfitting => ({
  code: 'media_too_small',
  message: `This one is too small for ${rulesOf(need.platform).name}${places[need.use]}: it has ${width} by ${height} pixels and would have to be enlarged more than four times`,
});

export const unknownFacts = (need: MediaNeed, kind: MediaKind): Unfitting => ({
  code: 'media_unreadable',
  message: `${takes(need, kind)}, but the size or length of this one cannot be read`,
});
