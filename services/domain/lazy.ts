/**
 * A value that is made at its first use. For patterns over all of Unicode and the like: they take 30 ms and more of
 * every start.
 */
export const lazy = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};
