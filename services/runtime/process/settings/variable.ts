import type { SettingReader } from '../config-values.ts';

/** A setting: the reader of its text, its default, and its line in `--help`. */
export interface Variable<T> {
  readonly name: string;
  readonly read: SettingReader<T>;
  readonly fallback: T;
  readonly help: string;
}

export const variable = <T>(name: string, read: SettingReader<T>, fallback: T, help: string): Variable<T> => ({
  name,
  read,
  fallback,
  help,
});
