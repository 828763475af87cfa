import { type PageReader, readPage, readPicture } from '../shared/page.ts';
import type { Found } from './facets.ts';
import type { LinkCard } from './record.ts';
import { blobOf } from './shapes.ts';
import type { Uploading } from './upload.ts';
import { xrpc } from './xrpc.ts';

/** The card below a post: the network does not look at the page itself. A page that says nothing gives a card of its address. */

const thumbTypes = ['image/jpeg', 'image/png', 'image/webp'];

const thumbOf = async ({ http, secret, steps }: Uploading, reader: PageReader, url: string) => {
  const picture = await readPicture(reader, url, thumbTypes);
  if (picture === null) return null;
  const result = await xrpc(
    http,
    {
      service: secret.service,
      nsid: 'com.atproto.repo.uploadBlob',
      input: { type: picture.type, body: [picture.bytes] },
      token: secret.token,
      subject: reader.subject,
      onSent: (bytes) => steps.moved(bytes),
    },
    steps.signal,
  );
  return result.kind === 'ok' ? blobOf(result.data.blob) : null;
};

/** Of the override `link`, else of the first link in the text; null: neither, or the text's own link shows no page. */
export const cardOf = async (uploading: Uploading, parts: readonly Found[]): Promise<LinkCard | null> => {
  const { http, request, steps } = uploading;
  const { link } = request.overrides;
  const wanted = typeof link === 'string' ? link : null;
  const inText = parts.find((one) => one.kind === 'link')?.uri ?? null;
  const uri = wanted ?? inText;
  if (uri === null) return null;
  const subject = { accountId: request.account.id, targetId: request.targetId };
  const reader = { http, subject, signal: steps.signal };
  const page = await readPage(reader, uri);
  if (page === null) {
    return wanted === null ? null : { uri, title: new URL(uri).host, description: '', thumb: null };
  }
  const { title, description, picture } = page;
  return { uri, title, description, thumb: picture === null ? null : await thumbOf(uploading, reader, picture) };
};
