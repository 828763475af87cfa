import type { Tag } from '../call/operation.ts';

export const mediaTag: Tag = {
  place: 80,
  name: 'media',
  noun: 'media',
  about: 'The files of the content library, and their renditions for each network.',
  realTime: true,
};

/** One story in all examples: a photo that is uploaded for a client, and what is made of it. */

const ids = {
  workspace: '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0004',
  client: '315d0d36-9a7d-573e-8bc2-d5133b51f29b',
  asset: '3f6c1d2a-58b7-5e91-8a4d-90c2b7e10005',
};
const key = `${ids.workspace}/${ids.asset}`;
const address = (name: string): string => `https://files.example/${key}/${name}?signature=<signature>`;
const asked = '2026-01-31T08:00:00.000Z';

export const presignExample = {
  body: { fileName: 'winter.png', contentType: 'image/png', bytes: 482_133, clientId: ids.client, folder: 'Winter' },
  data: {
    object: 'media_upload',
    assetId: ids.asset,
    key: `${key}/upload`,
    url: address('upload'),
    headers: { 'Content-Type': 'image/png', 'Content-Length': '482133' },
    expiresAt: '2026-01-31T09:00:00.000Z',
  },
};

const registered = {
  id: ids.asset,
  object: 'media',
  status: 'transcoding',
  publishable: false,
  kind: 'image',
  clientId: ids.client,
  folder: 'Winter',
  name: 'winter.png',
  contentType: 'image/png',
  bytes: 482_133,
  sha256: null,
  width: null,
  height: null,
  durationMs: null,
  altText: 'A table laid for four, snow behind the window.',
  url: null,
  posterUrl: null,
  failure: null,
  readiness: { instagram: 'preparing', x: 'preparing' },
  progress: null,
  variants: [],
  createdAt: asked,
  updatedAt: asked,
  revision: 1,
};
const { altText } = registered;

export const registerExample = {
  body: { assetId: ids.asset, altText, platforms: ['instagram', 'x'] },
  data: { ...registered, readyEvent: 'media.ready' },
};

export const importExample = {
  body: { url: 'https://cdn.example/photos/winter.png', clientId: ids.client, folder: 'Winter', altText },
  data: { ...registered, kind: null, contentType: null, bytes: null, revision: 0, readyEvent: 'media.ready' },
};

const size = { width: 1080, height: 1080, durationMs: null };
const rendition = '1f0c6a2d9b7e4c53a8d1e0f2b3c4d5e6';

export const exampleMedia = {
  ...registered,
  status: 'transcoded',
  publishable: true,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  width: 1080,
  height: 1080,
  url: address('original'),
  posterUrl: address('poster.jpg'),
  readiness: { instagram: 'ready', x: 'not_needed' },
  progress: null,
  variants: [
    {
      platform: 'instagram',
      use: 'feed',
      status: 'ready',
      contentType: 'image/jpeg',
      ...size,
      bytes: 301_772,
      url: address(`${rendition}.jpg`),
      failure: null,
    },
    {
      platform: 'x',
      use: 'feed',
      status: 'not_needed',
      contentType: 'image/png',
      ...size,
      bytes: 482_133,
      url: address('original'),
      failure: null,
    },
  ],
  updatedAt: '2026-01-31T08:00:02.000Z',
  revision: 6,
};

export const deletedExample = {
  id: exampleMedia.id,
  object: 'media_deletion' as const,
  deletedAt: '2026-02-01T08:00:00.000Z',
  createdAt: exampleMedia.createdAt,
  updatedAt: '2026-02-01T08:00:00.000Z',
  revision: 7,
};
