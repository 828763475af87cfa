import { type Answer, Refusal, refuse } from './answer.ts';
import { accessOf, emptyOf, jsonOf, partsOf, type Request, single } from './request.ts';
import type { State, Upload } from './state.ts';
import { object, oneOf } from './strict.ts';

/** "Creating video Pins": an upload is registered, the file goes to a storage of Amazon, and is then processed. */

const uploadBody = object({ media_type: oneOf('video') }, ['media_type']);
const policyMs = 3_600_000;

export const register = (state: State, request: Request, _id: string, origin: string): Answer => {
  const { personId } = accessOf(state, request, 'pins:read', 'pins:write');
  uploadBody(jsonOf(request), 'body');
  const id = state.id();
  const until = state.now() + policyMs;
  const upload: Upload = {
    ...{ id, personId, key: `uploads/11/aa/22/3:video:${personId}:${id}`, until },
    policy: Buffer.from(JSON.stringify({ expiration: new Date(until).toISOString() })).toString('base64'),
    ...{ signature: state.token('signature'), received: 0, head: null, bytes: 0, looks: state.processingLooks },
  };
  state.uploads.set(id, upload);
  const upload_parameters = fieldsOf(state, upload);
  return {
    status: 201,
    body: { media_id: id, media_type: 'video', upload_url: `${origin}/storage/`, upload_parameters },
  };
};

const fieldsOf = (state: State, { key, policy, signature, until }: Upload): Readonly<Record<string, string>> => ({
  'x-amz-date': new Date(until - policyMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, ''),
  'x-amz-signature': signature,
  'x-amz-security-token': `security-${state.app.clientId}`,
  'x-amz-algorithm': 'AWS4-HMAC-SHA256',
  ...{ key, policy, 'x-amz-credential': 'ASIA6QZJ64OPIKV7FRVX/20220127/us-east-1/s3/aws4_request' },
  'Content-Type': 'multipart/form-data',
});

const storageError = (status: number, code: string, message: string): Refusal =>
  new Refusal({
    status,
    body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`,
  });

/** "POST Object" of Amazon S3: all fields, then the file, and nobody's token. */
export const store = (state: State, request: Request): Answer => {
  if (request.headers.authorization !== undefined) {
    throw storageError(400, 'InvalidArgument', 'Only one auth mechanism allowed');
  }
  if (request.headers['content-length'] === undefined) throw storageError(411, 'MissingContentLength', 'A length');
  const parts = partsOf(request);
  if (parts === null) throw storageError(412, 'PreconditionFailed', 'Bucket POST must be of the type multipart');
  const file = parts.at(-1);
  if (file?.name !== 'file') throw storageError(400, 'InvalidArgument', 'POST requires exactly one file, at the end');
  const given = parts.slice(0, -1).map(({ name, data }) => [name, data.toString('utf8')]);
  const key = given.find(([name]) => name === 'key')?.[1];
  const upload = [...state.uploads.values()].find((one) => one.key === key);
  const wanted = upload === undefined ? [] : Object.entries(fieldsOf(state, upload));
  if (upload === undefined || JSON.stringify(given) !== JSON.stringify(wanted)) {
    throw storageError(403, 'AccessDenied', 'Invalid according to Policy');
  }
  if (upload.until <= state.now())
    throw storageError(403, 'AccessDenied', 'Invalid according to Policy: Policy expired.');
  upload.received += file.data.length;
  upload.bytes = file.data.length;
  upload.head = Buffer.from(file.data.subarray(0, 64));
  return { status: 204, body: '' };
};

export type Status = 'registered' | 'processing' | 'succeeded' | 'failed';

/** A container of ISO 14496-12 begins so. */
const isVideo = (head: Buffer): boolean => head.subarray(4, 8).toString('latin1') === 'ftyp';

export const statusOf = ({ head, looks }: Upload): Status => {
  if (head === null) return 'registered';
  if (looks > 0) return 'processing';
  return isVideo(head) ? 'succeeded' : 'failed';
};

export const look = (state: State, request: Request, id: string): Answer => {
  const { personId } = accessOf(state, request, 'pins:read');
  emptyOf(request);
  object({})(single(request.query), 'query');
  const upload = state.uploads.get(id);
  if (upload === undefined || upload.personId !== personId) throw refuse('media_not_found');
  const status = statusOf(upload);
  if (status === 'processing') upload.looks -= 1;
  return { status: 200, body: { media_id: id, media_type: 'video', status } };
};
