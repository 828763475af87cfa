import { BlobError } from '#contracts/ports/blob-store.ts';

const form = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}(\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}){0,9}$/;

/** A key names a file under the store and nothing else: no segment is empty, hidden, `.` or `..`. @throws BlobError */
export const checkKey = (key: string): string => {
  if (key.length > 500 || !form.test(key)) throw new BlobError('refused', 'the key is malformed');
  return key;
};
