/** Every call of `calls.txt` has the names that Meta's own library has for that edge. Where pip has no answer, the test says so. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { orMissing } from '#test/support/missing.ts';
import { type MetaNames, metaNames } from '#test/support/networks/meta-names.ts';
import { suite } from '#test/support/suite.ts';

const opened = await orMissing(metaNames(['page', 'pagepost', 'post', 'advideo']).then((names) => ({ names })));

/** What of the library a placeholder of `calls.txt` is. */
const owners: Readonly<Record<string, readonly string[]>> = {
  page: ['Page'],
  post: ['PagePost', 'Post'],
  video: ['AdVideo'],
};
/** "Graph API overview", "Paginated Results", "Secure Requests": of every call. The files of a form are none of the library's parameters. */
const everywhere = ['fields', 'limit', 'after', 'since', 'until', 'appsecret_proof', 'access_token'];
const files = ['source', 'video_file_chunk', 'thumb'];
/** "Page Video Reels", "Resumable Upload" name them, and the library sends them by itself. */
const known: Readonly<Record<string, readonly string[]>> = {
  'Page POST /videos': ['upload_phase', 'upload_session_id', 'start_offset', 'file_size'],
};

interface Call {
  readonly method: string;
  readonly owner: string;
  readonly edge: string;
  readonly names: readonly string[];
  readonly fields: readonly string[];
}

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

const callsIn = (text: string): readonly Call[] =>
  [...text.matchAll(/^ {2}(GET|POST|DELETE) \/v27\.0\/<(\w+)>(\/\w+)?\?(\S*)(.*)$/gm)].map(
    ([, method = '', owner = '', edge = '/', query = '', body = '']) => {
      const form = /^ \{/.test(body) ? body.matchAll(/(?:^ \{|; )(\w+)=/g) : body.matchAll(/(?:^ |&)(\w+)=/g);
      const asked = /(?:^|&)fields=([^&]*)/.exec(query)?.[1] ?? '';
      return {
        ...{
          method,
          owner,
          edge,
          fields: topOf(asked),
        },
        names: [...[...query.matchAll(/(?:^|&)(\w+)=/g)], ...form].map(([, name = '']) => name),
      };
    },
  );

const strangers = ({ edges, fields }: MetaNames, calls: readonly Call[]): readonly string[] =>
  calls.flatMap(({ method, owner, edge, names, fields: asked }) => {
    const classes = owners[owner] ?? [];
    const keys = classes.map((one) => `${one} ${method} ${edge}`);
    const taken = keys.flatMap((key) => [...(edges[key] ?? []), ...(known[key] ?? [])]);
    const call = `${owner} ${method} ${edge}`;
    const isThere = keys.some((key) => edges[key] !== undefined);
    const odd = names.filter((name) => ![...everywhere, ...files, ...taken].includes(name));
    // Only a node's own fields stand in the classes that are read here; an edge can be read as a field.
    const has = (one: string, name: string) =>
      fields[one]?.includes(name) || edges[`${one} GET /${name}`] !== undefined;
    const own = edge === '/' ? asked.filter((name) => !classes.some((one) => has(one, name))) : [];
    return [...(isThere ? [] : [`${call} is no edge`]), ...[...odd, ...own].map((name) => `${call}: ${name}`)];
  });

suite('names of the calls to facebook', (t) => {
  if ('missing' in opened) {
    t.skip('stand in Meta’s own library', opened.missing);
    return;
  }
  const calls = callsIn(readFileSync(new URL('calls.txt', import.meta.url), 'utf8'));

  t('stand in Meta’s own library, each at its edge', () => {
    assert.ok(calls.length > 50, `only ${calls.length} calls were read`);
    assert.deepEqual([...new Set(strangers(opened.names, calls))], []);
  });

  t('another name is found', () => {
    const wrong: Call = { method: 'POST', owner: 'page', edge: '/feed', names: ['massage'], fields: [] };
    assert.deepEqual(strangers(opened.names, [wrong]), ['page POST /feed: massage']);
    assert.deepEqual(strangers(opened.names, [{ ...wrong, edge: '/fead', names: [] }]), ['page POST /fead is no edge']);
  });
});
