import path from 'node:path';
import { codeOf, importsOf, production } from './sources.ts';

/**
 * Where a network of the kit may make something visible: in one place of its `publish.ts`, right behind the boundary, and in
 * the steps after a post is out. The kit makes nothing.
 */

const within = 'infra/platforms/';
const kit = `${within}kit/`;

/** Code by file name. */
export type NetworkCode = ReadonlyMap<string, string>;

/** The networks that publish by the client of the kit; another may take its tables alone. */
export const kitNetworks: ReadonlyMap<string, NetworkCode> = new Map(
  [
    ...Map.groupBy(
      production.filter((file) => file.startsWith(within)),
      (file) => path.posix.dirname(file),
    ),
  ]
    .filter(([folder]) => folder !== within.slice(0, -1) && `${folder}/` !== kit)
    .filter(([, files]) => files.some((file) => importsOf(file).some(({ to }) => to === `${kit}network.ts`)))
    .map(([folder, files]) => [
      path.posix.basename(folder),
      new Map(files.map((file) => [path.posix.basename(file), codeOf(file)])),
    ]),
);

export const kitCode: NetworkCode = new Map(
  production.filter((file) => file.startsWith(kit)).map((file) => [path.posix.basename(file), codeOf(file)]),
);

const placesOf = (code: string, pattern: RegExp): readonly number[] =>
  [...code.matchAll(pattern)].map(({ index }) => index);

/** The function at the left edge of the file in which a place is; of another form it is none. */
const functionAt = (code: string, at: number): string => {
  const found = [
    ...code.slice(0, at).matchAll(/^(?:export )?(?:default )?(?:(?:async )?function\*? (\w+)|const (\w+)|(class) )/gm),
  ];
  const [, named, held] = found.at(-1) ?? [];
  return named ?? held ?? '';
};

/** A reply below the post, and steps after it: a cover, captions. */
const mayFollow = /^(?:comment|after[A-Z]\w*)$/;

const once = /\.once\(/g;
const boundary = /\.boundary\(/g;

const faultsOfCrossing = (code: string): readonly string[] => {
  const crossings = placesOf(code, boundary);
  const [from] = crossings;
  if (from === undefined || crossings.length > 1)
    return [`publish.ts crosses the boundary in ${crossings.length} places`];
  const call = placesOf(code, once).find((at) => at > from);
  const crossing = functionAt(code, from);
  if (call === undefined || functionAt(code, call) !== crossing) return ['no once( follows the boundary'];
  const between = code.slice(from, call);
  const awaited = between.split(/\bawait\b/).length - 1;
  const waits = /\bfor \(|\bwhile \(|\.then\(|\byield\b|\.call\(/.exec(between)?.[0];
  const isLast = /(?:\bawait|\breturn) (?:\w+\.)*\w+$/.test(between);
  return awaited > 1 || waits !== undefined || !isLast ? ['something is awaited between the boundary and once('] : [];
};

/** What of a network's code breaks the rule. */
export const faultsOf = (network: NetworkCode): readonly string[] => {
  const publish = network.get('publish.ts');
  if (publish === undefined) return ['there is no publish.ts'];
  const crossing = functionAt(publish, placesOf(publish, boundary)[0] ?? 0);
  const faults = [...faultsOfCrossing(publish)];
  for (const [file, code] of network) {
    if (file !== 'publish.ts' && placesOf(code, boundary).length > 0) faults.push(`${file} crosses the boundary`);
    if (/\{[^{}]*\bboundary\b[^{}]*\} = \w*steps\b/.test(code)) faults.push(`${file} takes boundary out of the steps`);
    const calls = placesOf(code, once);
    if (placesOf(code, /\bonce\b/g).length > calls.length) faults.push(`${file} names once without calling it`);
    const own = calls.filter((at) => file === 'publish.ts' && functionAt(code, at) === crossing);
    if (own.length > 1) faults.push(`${crossing} calls once( ${own.length} times`);
    for (const at of calls) {
      const name = functionAt(code, at);
      if (!(file === 'publish.ts' && name === crossing) && !mayFollow.test(name)) {
        faults.push(`${file}: ${name || 'no function'} calls once(`);
      }
    }
  }
  return faults;
};

export const faultsOfKit = (code: NetworkCode): readonly string[] =>
  [...code].flatMap(([file, text]) =>
    placesOf(text, once).length + placesOf(text, boundary).length > 0 ? [`${file} makes something visible itself`] : [],
  );
