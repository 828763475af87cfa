import { BlobError } from '#contracts/ports/blob-store.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';

/** Asks the blob store; that it is away is told as any other store's absence. */
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
