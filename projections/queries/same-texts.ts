import type { Knex } from 'knex';
import { batchesOf } from '#contracts/base/batches.ts';
import { capabilities } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { rowTypes, toIso } from '../engine/rows.ts';
import { bodyAtSql } from '../models/post-bodies.ts';
import { ofClientsAlone, threeTimes } from '../models/sql.ts';
import { view } from '../shapes.ts';

/** Posts that go, or went, to an account with a given text around a given time. */

export interface TextAt {
  readonly accountId: string;
  readonly platform: Platform;
  /** ISO 8601. */
  readonly dueAt: string;
}

export interface TextOfNetwork {
  readonly platform: Platform;
  readonly text: string;
}

export interface Looked {
  readonly workspaceId: string;
  /** A post that is not looked at; null: none. */
  readonly postId: string | null;
  /** Only posts of these clients that go to no other; absent: of all. */
  readonly clientIds?: readonly string[];
}

export interface SameText {
  readonly accountId: string;
  readonly postId: string;
  /** ISO 8601. */
  readonly dueAt: string;
}

/** Hours around a target in which the same text on its account is worth a warning. */
const hours = 24;

/** Targets of one account that are compared, the nearest before the time and the nearest after it. */
const maxCompared = 20;

/**
 * Whether a network gets the text: the first segment of a thread, where it takes threads, else its own override, else
 * the content. One expression, because Postgres decompresses a body anew for each member that a statement reads.
 */
const getsText = `
  ($threads == true && $.thread.segments[0].content == $text) ||
  (!($threads == true && exists($.thread.segments[0].content)) && (
    exists($.variants[*] ? (@.platform == $platform && @.contentOverride == $text)) ||
    ($.content == $text && !exists($.variants[*] ? (@.platform == $platform && @.contentOverride != null)))))`;

/** Targets of one account on one side of the time, the latest first. One column orders both walks of the index. */
const before = `
  select post_id, post_revision, due_at from ${view('post_targets')} t
  where t.account_id = a.account_id and t.due_at <= a.due_at
    and t.due_at > a.due_at - interval '${hours} hours' and t.status not in ('canceled', 'failed')
  order by t.due_at desc, t.id desc limit ${maxCompared}`;
const after = `
  select * from (
    select post_id, post_revision, due_at from ${view('post_targets')} t
    where t.account_id = a.account_id and t.due_at > a.due_at
      and t.due_at < a.due_at + interval '${hours} hours' and t.status not in ('canceled', 'failed')
    order by t.due_at, t.id limit ${maxCompared}
  ) nearest order by due_at desc`;

/**
 * The latest of these targets whose post gives the account's network the text. Postgres reads no target behind it: the
 * targets come in the order of the result, so nothing has to be sorted before the first is compared.
 * NOTE: the post is asked for as the first of a range of one id, in the order of ids, which the primary key alone has. As
 * `id = …` it is found by whichever index holds the id while the table has a page; Postgres keeps that plan, and passes the
 * whole index for each target once the table has grown.
 */
const latestOf = (targets: string, among: string): string => `
  (select t.post_id, t.due_at
  from (${targets}) t
  cross join lateral (
    select * from ${view('posts')} p where p.id >= t.post_id and p.id <= t.post_id order by p.id limit 1) p
  where p.workspace_id = a.workspace_id and p.id is distinct from a.post_id
    and jsonb_path_match(${bodyAtSql}, a.gets_text, a.looked)${among}
  order by t.due_at desc limit 1)`;

/** Each account is one of a call (`asker`) and has one of the texts. Two walks of one index for each. */
const searchOf = (among: string): string => `
  with asked as materialized (
    select a.asker, a.workspace_id, a.post_id, a.account_id, a.due_at, t.looked, ?::jsonpath as gets_text
    from unnest(?::int[], ?::uuid[], ?::uuid[], ?::uuid[], ?::timestamptz[], ?::int[])
      as a (asker, workspace_id, post_id, account_id, due_at, text)
    join unnest(?::jsonb[]) with ordinality as t (looked, text) using (text)
  )
  select a.asker, a.account_id::text, found.post_id::text, found.due_at
  from asked a cross join lateral (
    ${latestOf(after, among)} union all ${latestOf(before, among)} order by due_at desc limit 1
  ) found`;

interface Search {
  readonly sql: string;
  /** Of a statement that each connection plans once. Absent: planned anew at each use. */
  readonly name?: string;
}

/** Its plan takes longer to make than to carry out. */
const search: Search = { sql: searchOf(''), name: 'same-texts' };
/** What it asks of the clients could keep a plan that suits new tables alone. */
const searchOfClients: Search = { sql: searchOf(` and ${ofClientsAlone('p')}`) };

interface Question {
  readonly among: Looked;
  readonly texts: readonly TextOfNetwork[];
  readonly asked: readonly TextAt[];
}

/** One query for all questions. Accounts of networks without a text are left out. */
const answers = async (
  knex: Knex,
  { sql, ...named }: Search,
  questions: readonly Question[],
  clientIds: readonly (readonly string[])[],
): Promise<readonly (readonly SameText[])[]> => {
  const texts: string[] = [];
  const rows = questions.flatMap(({ among: { workspaceId, postId }, texts: ofNetworks, asked }, asker) => {
    const places = new Map<Platform, number>();
    for (const { platform, text } of ofNetworks) {
      const threads = capabilities(platform).thread;
      places.set(platform, texts.push(JSON.stringify({ platform, text, threads })));
    }
    return asked.flatMap(({ accountId, platform, dueAt }) => {
      const text = places.get(platform);
      return text === undefined ? [] : [[asker, workspaceId, postId, accountId, dueAt, text] as const];
    });
  });
  // Ids, numbers and instants need no quotes: pg would look for them in each.
  const columns = [0, 1, 2, 3, 4, 5].map((at) => `{${rows.map((row) => row[at] ?? 'NULL').join()}}`);
  const asRead = { ...named, rowMode: 'array', types: rowTypes };
  const found: { readonly rows: readonly [asker: number, accountId: string, postId: string, dueAt: string][] } =
    await knex.raw(sql, [getsText, ...columns, texts, ...clientIds] as never).options(asRead);
  const byAsker = questions.map((): SameText[] => []);
  for (const [asker, accountId, postId, dueAt] of found.rows)
    byAsker[asker]?.push({ accountId, postId, dueAt: toIso(dueAt) ?? dueAt });
  return byAsker;
};

/** Calls that one query answers: each waits for all of them. */
const maxCalls = 16;
/** A call with more accounts has a query of its own, so that no other call waits for it. */
const maxShared = 50;

const ofAllPosts = batchesOf(async (knex: Knex, questions: readonly Question[]) => {
  const found = await answers(knex, search, questions, []);
  return new Map(questions.map((question, at) => [question, found[at] ?? []]));
}, maxCalls);

/** For each account the latest post with the text of its network, if any. Concurrent calls share a query. */
export const sameTexts = async (
  knex: Knex,
  among: Looked,
  texts: readonly TextOfNetwork[],
  asked: readonly TextAt[],
): Promise<readonly SameText[]> => {
  const question: Question = { among, texts, asked };
  const { clientIds } = among;
  const isShared = clientIds === undefined && asked.length <= maxShared;
  if (isShared) return (await ofAllPosts(knex, question)) ?? [];
  const [found = []] =
    clientIds === undefined
      ? await answers(knex, search, [question], [])
      : await answers(knex, searchOfClients, [question], [...threeTimes(clientIds), ...threeTimes(clientIds)]);
  return found;
};
