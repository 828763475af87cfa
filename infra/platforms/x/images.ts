import type { PublishMedia } from '#contracts/ports/platform.ts';
import type { Failed } from '../shared/outcomes.ts';
import { incomplete, keep, notOk, startedOf, subjectOf, type Upload, type Uploading } from './upload.ts';

/** Uploads a picture in one call (docs.x.com, "Upload media"). X knows it for a day. */
export const uploadImage = async (uploading: Uploading, media: PublishMedia): Promise<Upload | Failed> => {
  const { api, request, steps } = uploading;
  const path = await media.file();
  const file = { path, start: 0, end: media.bytes };
  const form = { fields: { media_category: 'tweet_image' }, file, type: media.contentType };
  const onSent = (bytes: number) => steps.moved(bytes);
  const ask = { method: 'POST', path: '/2/media/upload', form, onSent } as const;
  const result = await api.call(subjectOf(request), ask, steps.signal);
  steps.signal.throwIfAborted();
  if (result.kind !== 'ok') return notOk(uploading, media, result);
  const started = startedOf(uploading, media, result.body.data, { segmentBytes: 0, next: 0, state: 'ready' });
  if (started === null) return incomplete(media, 'the answer has no id of the file');
  const described = await tellAltText(uploading, media, started);
  return described ?? keep(uploading, started);
};

/** Null: X has it, or there is none. X takes a description of pictures and GIFs, not of videos. */
export const tellAltText = async (
  uploading: Uploading,
  media: PublishMedia,
  { id }: Upload,
): Promise<Failed | null> => {
  const { api, request, steps } = uploading;
  if (media.altText === null || media.altText === '' || media.kind === 'video') return null;
  const json = { id, metadata: { alt_text: { text: media.altText } } };
  const ask = { method: 'POST', path: '/2/media/metadata', json } as const;
  const result = await api.call(subjectOf(request), ask, steps.signal);
  steps.signal.throwIfAborted();
  return result.kind === 'ok' ? null : notOk(uploading, media, result);
};
