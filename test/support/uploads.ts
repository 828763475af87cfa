/** Uploads as callers make them: request an upload, PUT the file, register the asset. */
import assert from 'node:assert/strict';
import type { Answered, Caller } from './http.ts';

export interface Upload {
  readonly fileName?: string;
  readonly contentType?: string;
  readonly body?: Uint8Array;
  readonly clientId?: string;
  readonly folder?: string;
}

export const presignBody = ({
  fileName = 'photo.jpg',
  contentType = 'image/jpeg',
  body = Buffer.from('bytes'),
  ...more
}: Upload = {}) => ({
  fileName,
  contentType,
  bytes: body.length,
  ...more,
});

/** The PUT alone, by default with the headers of the offer. */
export const put = (
  offer: Answered,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> => {
  const { 'Content-Type': type = '' } = offer.data.headers as Readonly<Record<string, string>>;
  return fetch(String(offer.data.url), {
    method: 'PUT',
    body: Buffer.from(body),
    headers: { 'Content-Type': type, ...headers },
  });
};

/** An uploaded file that was not registered. */
export const uploaded = async (by: Caller, upload: Upload = {}): Promise<Answered> => {
  const offer = await by.post('/media/presign', presignBody(upload));
  assert.equal(offer.status, 200, offer.text);
  const sent = await put(offer, upload.body ?? Buffer.from('bytes'));
  assert.ok(sent.ok, await sent.text());
  return offer;
};
