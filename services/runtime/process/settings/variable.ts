import type { SettingReader } from '../config-values.ts';

/** A setting: the reader of its text, its default, and its line in `--help`. */
export interface Variable<T> {
  readonly name: string;
  /** Former name, read where `name` is not set. */
  readonly former?: string;
  readonly read: SettingReader<T>;
  readonly fallback: T;
  readonly help: string;
}

export const variable = <T>(
  name: string,
  read: SettingReader<T>,
  fallback: T,
  help: string,
  former?: string,
): Variable<T> => ({
  name,
  ...(former === undefined ? {} : { former }),
  read,
  fallback,
  help: former === undefined ? help : `${help}; its former name ${former} still works`,
});
