import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type Place, versions } from './client.ts';
import { find, run, tools } from './shell.ts';

/** OpenAPI Generator: one jar for many languages. */

const { version, sha256 } = versions['openapi-generator'];

/** Maven fetches the jar, so that the reader's mirrors and proxies apply. @throws when it is another file */
const jarIn = async (place: Place): Promise<string> => {
  const jar = path.join(place.tools, `openapi-generator-cli-${version}.jar`);
  const isRight = () => existsSync(jar) && createHash('sha256').update(readFileSync(jar)).digest('hex') === sha256;
  if (isRight()) return jar;
  const maven = await find(tools.maven);
  place.step(`fetching openapi-generator ${version}`);
  mkdirSync(place.tools, { recursive: true });
  const copy = `org.apache.maven.plugins:maven-dependency-plugin:${versions['maven-dependency-plugin']}:copy`;
  const artifact = `-Dartifact=org.openapitools:openapi-generator-cli:${version}:jar`;
  await run(maven, ['-B', '-q', copy, artifact, `-DoutputDirectory=${place.tools}`], {
    cwd: place.folder,
    log: place.log,
    fetches: true,
  });
  if (isRight()) return jar;
  rmSync(jar, { force: true });
  throw new Error(`openapi-generator-cli ${version} is not the jar of versions.json: its sha256 differs`);
};

/** Said of any contract of this form, with the reason why each is harmless. */
const harmless: readonly RegExp[] = [
  // OpenAPI 3.1: what does not work would fail below.
  /OpenAPI 3\.1 support is still in beta/,
  // It looks up the name of a text schema, which is no model.
  /Failed to get the schema name: null/,
  // The parameters `from` and `type`: their names in the request stay. A model of this name would be reported as one.
  /(?:From|type) \(reserved word\) cannot be used as (?:model|parameter) name/,
  // Examples of requests are for people.
  /Ignoring complex example on request body/,
];

/** @returns the warnings that are not known to be harmless */
export const generate = async (
  place: Place,
  language: string,
  output: string,
  options: Readonly<Record<string, string | boolean>>,
  more: readonly string[] = [],
): Promise<readonly string[]> => {
  const java = await find(tools.java);
  const jar = await jarIn(place);
  place.step(`generating with openapi-generator ${version}`);
  const additional = Object.entries(options).map(([name, value]) => `${name}=${value}`);
  const sourcesOnly = 'apiTests=false,modelTests=false,apiDocs=false,modelDocs=false';
  const args = [
    ...['-jar', jar, 'generate', '-i', place.contract, '-g', language, '-o', output],
    ...[`--additional-properties=${additional.join(',')}`, '--global-property', sourcesOnly, ...more],
  ];
  const said = await run(java, args, { cwd: place.folder, log: place.log });
  return said
    .split('\n')
    .filter((line) => /\b(?:WARN|ERROR)\b/.test(line) && !harmless.some((one) => one.test(line)))
    .map((line) => line.replace(/^\[main\] \w+\s+/, ''));
};
