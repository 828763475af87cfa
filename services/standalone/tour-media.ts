import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Received, Receiver } from './receiver.ts';
import type { Screen } from './screen.ts';
import type { TourClient } from './tour-client.ts';

/** The media of the tour: an uploaded clip and an imported photo, as a phone stores them. */

interface Variant {
  readonly platform: string;
  readonly use: string;
  readonly status: string;
  readonly contentType: string | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
  readonly bytes: number | null;
  readonly failure: { readonly message: string } | null;
}

interface Media {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly contentType: string | null;
  readonly bytes: number | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
  readonly failure: { readonly message: string } | null;
  readonly variants: readonly Variant[];
}

const fixture = (name: string): Buffer => readFileSync(new URL(`../../test/fixtures/${name}`, import.meta.url));

/** For a slow machine; it usually takes a few seconds. Milliseconds. */
const patienceMs = 120_000;

const over = ['media.ready', 'media.failed', 'media.quarantined'];

/** Waits for the webhook with the result, as an integration does that does not poll. */
const ended = async (receiver: Receiver, assetId: string, signal: AbortSignal): Promise<Received> => {
  for (const until = performance.now() + patienceMs; performance.now() < until; ) {
    const said = receiver.received.find(({ type, data }) => over.includes(type) && data.assetId === assetId);
    if (said !== undefined) return said;
    await delay(50, undefined, { signal });
  }
  throw new Error(`no webhook reported the result of ${assetId} within ${patienceMs / 1_000} s`);
};

const kilobytes = (bytes: number | null): string => (bytes === null ? '–' : `${Math.ceil(bytes / 1_000)} kB`);
const size = ({ width, height }: Pick<Media, 'width' | 'height'>): string =>
  width === null || height === null ? '–' : `${width}×${height}`;
const seconds = (durationMs: number | null): string => (durationMs === null ? '–' : `${durationMs / 1_000} s`);

const show = (media: Media, screen: Screen): void => {
  const { variants } = media;
  screen.table(
    [media.name, 'use', 'rendition', 'format', 'size', 'length', 'bytes'],
    [
      [
        '(as it came)',
        '',
        '',
        media.contentType ?? '–',
        size(media),
        seconds(media.durationMs),
        kilobytes(media.bytes),
      ],
      ...variants.map((one) => [
        one.platform,
        one.use,
        one.status,
        one.failure?.message ?? one.contentType ?? 'as it came',
        size(one),
        seconds(one.durationMs),
        kilobytes(one.bytes),
      ]),
    ],
    2,
  );
};

/** @throws when one of them does not become ready. */
export const prepareMedia = async (
  http: TourClient,
  options: {
    readonly clientId: string;
    readonly receiver: Receiver;
    readonly screen: Screen;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly photo: string; readonly clip: string }> => {
  const { clientId, receiver, screen, signal } = options;
  const clip = fixture('coffee.mov');
  const offer = await http.post<{ assetId: string; url: string; headers: Record<string, string> }>('/media/presign', {
    fileName: 'coffee.mov',
    contentType: 'video/quicktime',
    bytes: clip.length,
    clientId,
  });
  await http.upload(offer.url, offer.headers, clip);
  screen.event('clip uploaded', `coffee.mov, ${kilobytes(clip.length)}, to a presigned URL`);
  await http.post('/media', { assetId: offer.assetId, clientId, altText: 'An espresso, seen from above' });

  receiver.serve('/coffee.jpg', fixture('coffee.jpg'), 'image/jpeg');
  const url = `http://${receiver.host}/coffee.jpg`;
  const imported = await http.post<{ id: string }>('/media/import-url', { url, clientId });
  screen.event('photo imported', `from ${url}`);

  for (const id of [offer.assetId, imported.id]) {
    const said = await ended(receiver, id, signal);
    const media = await http.get<Media>(`/media/${id}`);
    if (said.type !== 'media.ready')
      throw new Error(`${media.name} ended as ${media.status}: ${media.failure?.message ?? 'without a reason'}`);
    screen.event(`${media.name} is ready`, `the webhook received ${said.type}`);
    show(media, screen);
  }
  return { photo: imported.id, clip: offer.assetId };
};
