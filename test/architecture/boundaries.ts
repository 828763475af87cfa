import path from 'node:path';
import { codeOf, importsOf, production } from './sources.ts';

/**
 * Where a network of the kit may make something visible: in one place of its `publish.ts`, right behind the boundary, and in
 * the steps after a post is out. The kit makes nothing.
 */

const within = 'infra/platforms/';
const kit = `${within}kit/`;

/** Code by the name of the file within its network. */
export type NetworkCode = ReadonlyMap<string, string>;

/** Who imports these can make something visible; another network may take the tables of the kit alone. */
const makers = [`${kit}client.ts`, `${kit}network.ts`, `${kit}upload.ts`];
const makes = (file: string): boolean => importsOf(file).some(({ to }) => makers.includes(to));

/** `x` of `infra/platforms/x/parts/a.ts`; of a file beside the networks, and of one elsewhere, it is none. */
const networkOf = (file: string): string =>
  file.startsWith(within) ? (/^([^/]+)\//.exec(file.slice(within.length))?.[1] ?? '') : '';
const isShared = (name: string): boolean => ['', 'kit', 'shared'].includes(name);

/** The networks that publish by the client of the kit. */
export const kitNetworks: ReadonlyMap<string, NetworkCode> = new Map(
  [...Map.groupBy(production, networkOf)]
    .filter(([name, files]) => !isShared(name) && files.some(makes))
    .map(([name, files]) => [
      name,
      new Map(files.map((file) => [file.slice(within.length + name.length + 1), codeOf(file)])),
    ]),
);

/** Puts the networks together, and publishes nothing. */
const togetherIn = `${within}live.ts`;

/** Files of no network that could make something visible all the same. */
export const strays = (files: readonly string[] = production, isMaker = makes): readonly string[] =>
  files.filter((file) => file !== togetherIn && !file.startsWith(kit) && isShared(networkOf(file)) && isMaker(file));

export const kitCode: NetworkCode = new Map(
  production.filter((file) => file.startsWith(kit)).map((file) => [path.posix.basename(file), codeOf(file)]),
);

const placesOf = (code: string, pattern: RegExp): readonly number[] =>
  [...code.matchAll(pattern)].map(({ index }) => index);

/**
 * The function at the left edge of the file in which a place is; what else stands at the edge (a class, `let`, a statement)
 * is none.
 */
const functionAt = (code: string, at: number): string => {
  const line = [...code.slice(0, at).matchAll(/^[^\s})\]].*/gm)].at(-1)?.[0] ?? '';
  const [, named, held] = /^(?:export )?(?:default )?(?:(?:async )?function\*? (\w+)|const (\w+)[ :])/.exec(line) ?? [];
  return named ?? held ?? '';
};

/** The lines that a place stands within, from the inside out. The formatter keeps what they indent. */
const linesAround = (code: string, at: number): readonly string[] => {
  const [own = '', ...before] = code.slice(0, at).split('\n').toReversed();
  const indentOf = (line: string): number => line.length - line.trimStart().length;
  const around: string[] = [];
  let inner = indentOf(own);
  for (const line of before) {
    if (inner === 0) break;
    if (line.trim() === '' || indentOf(line) >= inner) continue;
    inner = indentOf(line);
    around.push(line);
  }
  return around;
};

/** A loop, a callback of a list, a function of its own that may be called twice. */
const repeats =
  /\b(?:for|while)\b|\bdo \{|\.(?:map|flatMap|forEach|reduce|filter|some|every|from|then)\(|^\s+(?:export )?(?:const|let|var|function|async function)\b/;

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
  if (linesAround(code, from).some((line) => repeats.test(line)))
    return ['the boundary stands where it may be crossed twice'];
  const isLast = /(?:\bawait|\breturn) (?:\w+\.)*\w+$/.test(between);
  return awaited > 1 || waits !== undefined || !isLast ? ['something is awaited between the boundary and once('] : [];
};

/** Ways to take a method from its object, and to call a network past the client. */
const evasions: Readonly<Record<string, RegExp>> = {
  'takes boundary out of the steps': /[{,]\s*boundary\s*[,:}]|\[\s*['"`]boundary/,
  'sends past the client': /\bhttp\s*[?!]?\.\s*send\b|[{,]\s*send\s*[,}]\s*[^=]*=\s*[\w.]*http\b|(?<![.\w])fetch\(/,
  'writes a name in escapes': /(?<=[\w$.])\\u/,
};

/** A step after the post that is called before it is no step after it. */
const faultsOfSteps = (network: NetworkCode, crossing: string): readonly string[] => {
  const publish = network.get('publish.ts') ?? '';
  const made = placesOf(publish, once).find((at) => functionAt(publish, at) === crossing) ?? Number.POSITIVE_INFINITY;
  return [...network].flatMap(([file, code]) =>
    [...code.matchAll(/\b(after[A-Z]\w*)\(/g)].flatMap(({ index: at, 1: step }) => {
      const name = functionAt(code, at);
      if (mayFollow.test(name) || (file === 'publish.ts' && name === crossing && at > made)) return [];
      return [`${file}: ${name || 'no function'} calls ${step}( before the post is out`];
    }),
  );
};

/** What of a network's code breaks the rule. */
export const faultsOf = (network: NetworkCode): readonly string[] => {
  const publish = network.get('publish.ts');
  if (publish === undefined) return ['there is no publish.ts'];
  const crossing = functionAt(publish, placesOf(publish, boundary)[0] ?? 0);
  const faults = [...faultsOfCrossing(publish), ...faultsOfSteps(network, crossing)];
  for (const [file, code] of network) {
    if (file !== 'publish.ts' && placesOf(code, boundary).length > 0) faults.push(`${file} crosses the boundary`);
    for (const [what, form] of Object.entries(evasions)) if (form.test(code)) faults.push(`${file} ${what}`);
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
