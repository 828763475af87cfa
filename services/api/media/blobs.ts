import { BlobError } from '#contracts/ports/blob-store.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';

/** Calls the blob store. @throws Unavailable when it does not answer, like any other store */
export const unavailable = async <T>(ask: () => Promise<T>): Promise<T> => {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof BlobError && error.code === 'unavailable') {
      throw new Unavailable('The blob store does not answer.', { cause: error });
    }
    throw error;
  }
};
