/** Complete specs for cases that vary only a few members. */
import type { RenditionSpec } from '#schemas/media.ts';

type Video = Extract<RenditionSpec, { kind: 'video' }>;
type Picture = Extract<RenditionSpec, { kind: 'image' }>;

export const videoSpec = (over: Partial<Video> = {}): Video => ({
  ...{ kind: 'video', mode: 'encode', width: 320, height: 180, fit: 'scale', fps: 30, videoKbps: 800 },
  audio: { kbps: 96, sampleRate: 48_000, channels: 2 },
  maxBytes: null,
  ...over,
});

export const pictureSpec = (over: Partial<Picture> = {}): Picture => ({
  ...{ kind: 'image', format: 'jpeg', width: 200, height: 150, fit: 'scale', quality: 80, maxBytes: null },
  ...over,
});

export const never = (): AbortSignal => new AbortController().signal;
