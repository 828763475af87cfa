import type { World } from './http.ts';
import { Died } from './mortal-store.ts';

/** While it runs, an append of the api to any stream may die, or wait, before it is made. */
export const meddling = async <T>(
  { store }: Pick<World, 'store'>,
  before: (stream: string) => Promise<void>,
  run: () => Promise<T>,
): Promise<T> => {
  const append = store.append.bind(store);
  store.append = async (stream, ...rest) => {
    await before(stream);
    return append(stream, ...rest);
  };
  try {
    return await run();
  } finally {
    store.append = append;
  }
};

/**
 * Runs it as an api that dies before its append with this number, from 0: nothing that it would append later is stored.
 * @returns its result, and whether it came to its end
 */
export const livingFor = async <T>(
  world: Pick<World, 'store'>,
  appends: number,
  run: () => Promise<T>,
): Promise<{ readonly result: T; readonly survived: boolean }> => {
  let left = appends;
  const count = async (): Promise<void> => {
    left -= 1;
    if (left < 0) throw new Died('killed before an append');
  };
  const result = await meddling(world, count, run);
  return { result, survived: left >= 0 };
};

/**
 * Runs it, and right before its append with this number, from 0, runs another act from its beginning to its end.
 * @returns both results; no other: it made fewer appends
 */
export const interrupted = async <T, O>(
  world: Pick<World, 'store'>,
  appends: number,
  run: () => Promise<T>,
  act: () => Promise<O>,
): Promise<{ readonly result: T; readonly other?: O }> => {
  let left = appends;
  let other: { readonly other: O } | undefined;
  const interrupt = async (): Promise<void> => {
    left -= 1;
    if (left === -1) other = { other: await act() };
  };
  const result = await meddling(world, interrupt, run);
  return { result, ...other };
};
