/** Calls to Meta's networks as a `calls.txt` has them, held against the names of Meta's own library. */
import type { MetaNames } from './meta-names.ts';

export interface WrittenCall {
  readonly method: string;
  /** What stands in the place of an id, after the host where one is named: `page`, `graph.facebook.com media`. */
  readonly owner: string;
  /** `/` of the thing itself. */
  readonly edge: string;
  readonly names: readonly string[];
  /** Fields that are asked for, those at the top alone. */
  readonly fields: readonly string[];
  readonly metrics: readonly string[];
}

/** How names of ours and of the library are the same. */
export interface Terms {
  /** What of the library an owner is. */
  readonly owners: Readonly<Record<string, readonly string[]>>;
  /** Names of parameters that the documents have and the library lacks at that edge. */
  readonly known: Readonly<Record<string, readonly string[]>>;
  /** The enumeration that has the metrics of an owner, and others that the documents have. Absent: they are not held. */
  readonly metrics?: Readonly<Record<string, { readonly of: string; readonly known: readonly string[] }>>;
  /** Of every call. */
  readonly everywhere: readonly string[];
}

/** "Graph API overview", "Paginated Results", "Secure Requests": of every call. */
export const everywhere = ['fields', 'limit', 'after', 'since', 'until', 'appsecret_proof', 'access_token'];

/** Names at the top of `fields`, without what stands in braces and behind dots. */
const topOf = (asked: string): readonly string[] => {
  const flat = asked.replaceAll(/\{[^{}]*\}/g, '');
  return flat === asked
    ? flat
        .replaceAll(/\.[^,]*/g, '')
        .split(',')
        .filter((one) => one !== '')
    : topOf(flat);
};

const call = /^ {2}(GET|POST|DELETE) ([\w.]*)\/v27\.0\/<(\w+)(?: \d+)?>(\/\w+)?(?:\?(\S*))?(.*)((?:\n {4}\w+=.*)*)$/gm;

const namesIn = (text: string, form: RegExp): readonly string[] =>
  [...text.matchAll(form)].map(([, name = '']) => name);

/** @param text a body stands behind its call, or below it with one parameter a line */
export const callsIn = (text: string): readonly WrittenCall[] =>
  [...text.matchAll(call)].map(
    ([, method = '', host = '', owner = '', edge = '/', query = '', behind = '', below = '']) => {
      const parameter = (name: string): string => new RegExp(`(?:^|&)${name}=([^&]*)`).exec(query)?.[1] ?? '';
      return {
        ...{ method, owner: host === '' ? owner : `${host} ${owner}`, edge, fields: topOf(parameter('fields')) },
        names: [
          ...namesIn(query, /(?:^|&)(\w+)=/g),
          ...namesIn(behind, /^ \{/.test(behind) ? /(?:^ \{|; )(\w+)=/g : /(?:^ |&)(\w+)=/g),
          ...namesIn(below, /^ {4}(\w+)=/gm),
        ],
        metrics: topOf(parameter('metric')),
      };
    },
  );

/** What the library does not have. */
export const strangers = (
  { edges, fields, values }: MetaNames,
  terms: Terms,
  calls: readonly WrittenCall[],
): readonly string[] =>
  calls.flatMap(({ method, owner, edge, names, fields: asked, metrics }) => {
    const classes = terms.owners[owner] ?? [];
    const keys = classes.map((one) => `${one} ${method} ${edge}`);
    const taken = keys.flatMap((key) => [...(edges[key] ?? []), ...(terms.known[key] ?? [])]);
    const about = `${owner} ${method} ${edge}`;
    const isThere = keys.some((key) => (edges[key] ?? terms.known[key]) !== undefined);
    const odd = names.filter((name) => ![...terms.everywhere, ...taken].includes(name));
    // Only a node's own fields stand in the classes that are read here; an edge can be read as a field.
    const has = (one: string, name: string) =>
      fields[one]?.includes(name) || edges[`${one} GET /${name}`] !== undefined;
    const own = edge === '/' ? asked.filter((name) => !classes.some((one) => has(one, name))) : [];
    const counted = terms.metrics?.[owner];
    const wrong =
      counted === undefined
        ? []
        : metrics.filter((name) => ![...(values[counted.of] ?? []), ...counted.known].includes(name));
    return [
      ...(isThere ? [] : [`${about} is no edge`]),
      ...[...odd, ...own, ...wrong].map((name) => `${about}: ${name}`),
    ];
  });
