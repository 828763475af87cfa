import { isInfrastructureFault } from '#runtime/process/faults.ts';

/** One page of a walk over the open work of an archived client or a disconnected account. */

/** Posts under way at once for one workspace. */
const width = 8;

/** `next`: how far the walk has come; null: it is over. */
export interface WalkedPage<Progress> {
  readonly next: Progress | null;
  /** The first error of one post or invite, behind which the walk went on; null: none. */
  readonly fault: unknown;
}

/** Works on the items of a page; the error of one delays no other. @throws when a dependency is unavailable */
export const eachOfPage = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<unknown> => {
  let fault: unknown = null;
  for (let at = 0; at < items.length; at += width) {
    await Promise.all(
      items.slice(at, at + width).map((one) =>
        work(one).catch((error: unknown) => {
          if (isInfrastructureFault(error)) throw error;
          fault ??= error;
        }),
      ),
    );
  }
  return fault;
};
