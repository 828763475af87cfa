import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What is known of every generated client, whatever its language. */

export interface Place {
  /** The contract, as a file. */
  readonly contract: string;
  /** Empty; everything that is made for this client goes here. */
  readonly folder: string;
  /** Pinned tools, kept between runs. */
  readonly tools: string;
  readonly log: string;
  step(what: string): void;
}

export interface Made {
  /** Types of the generated client. */
  readonly types: readonly string[];
  /** Its calls. */
  readonly operations: readonly string[];
  /** What the generator said and we do not know to be harmless. */
  readonly warnings: readonly string[];
  /** Runs the tour; null: it has none. */
  readonly tour: null | {
    readonly program: string;
    readonly args: readonly string[];
    readonly cwd: string;
    readonly env?: Readonly<Record<string, string>>;
  };
}

/** A client by one generator: made, compiled or imported, and ready for the tour. */
export interface Generator {
  readonly name: string;
  /** @throws MissingTool */
  make(place: Place): Promise<Made>;
}

export const root = path.resolve(import.meta.dirname, '../..');
export const tours = path.join(import.meta.dirname, 'tours');

export interface Versions {
  readonly 'openapi-generator': { readonly version: string; readonly sha256: string };
  readonly 'maven-dependency-plugin': string;
  readonly 'NSwag.ConsoleCore': string;
  readonly 'Newtonsoft.Json': string;
  readonly python: readonly string[];
}

export const versions = JSON.parse(readFileSync(path.join(import.meta.dirname, 'versions.json'), 'utf8')) as Versions;

/** Files with this ending in this folder, or in any. */
export const named =
  (ending: string, inside = '') =>
  (name: string): boolean =>
    name.endsWith(ending) && name.includes(inside);

/** Paths of the files of a folder and of those below it. */
export const filesIn = (folder: string, isWanted: (name: string) => boolean): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll(path.sep, '/'))
    .filter(isWanted)
    .map((name) => path.join(folder, name));

/** The first group of every match in the files of a folder. */
export const matches = (folder: string, isWanted: (name: string) => boolean, pattern: RegExp): string[] =>
  filesIn(folder, isWanted)
    .flatMap((name) => [...readFileSync(name, 'utf8').matchAll(pattern)])
    .map((match) => match[1] ?? '');
