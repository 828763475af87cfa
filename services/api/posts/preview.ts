import { setImmediate } from 'node:timers/promises';
import { ruleIssues } from '#domain/compose.ts';
import { contentFor } from '#domain/content.ts';
import type { Rejection } from '#domain/decider.ts';
import { grantsOf } from '#domain/platforms/index.ts';
import {
  accountWarnings,
  errorsOf,
  type PreviewedContent,
  type PreviewWarning,
  previewContent,
  retryWarnings,
  warning,
} from '#domain/preview.ts';
import type { Destination } from '#domain/scheduling.ts';
import { postingRulesOf } from '#projections/posting-rules.ts';
import { type SameText, sameTexts } from '#projections/same-texts.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { PostCreate } from '#schemas/http/post.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { maxIssues } from '#schemas/validator.ts';
import { type Checked, checksOf, checksOfDraft, slowToCount } from '#services/workflows/posts/compose.ts';
import { showCadence } from '../cadence/show.ts';
import { withinLimit } from '../client-limits.ts';
import type { Call } from '../operation.ts';
import { previewQuota } from '../quota/show.ts';
import { bodyOf } from './body.ts';
import { composingOf } from './checks.ts';
import { select } from './destinations.ts';
import { takenRefOf } from './external-ref.ts';
import { Reads } from './reads.ts';

/** What publishing a body would do now. Nothing is written. */

type Previewing = Call<unknown, unknown, PostCreate>;

/** Hours around a target in which the same text on its account is worth a warning. */
const sameTextHours = 24;

/** Every reason for which the checks refuse, and what they found out. */
const all = async <Found>(checks: AsyncGenerator<Rejection, Found>) => {
  const refusals: Rejection[] = [];
  for (;;) {
    const { done, value } = await checks.next();
    if (done === true) return { refusals, found: value };
    refusals.push(value);
  }
};

const problem = (at: 'create' | 'publish', { code, message, errors }: Rejection) => ({
  at,
  code,
  detail: message,
  errors: errors.slice(0, maxIssues),
});

const isSame = (a: Rejection, b: Rejection): boolean =>
  a.code === b.code && JSON.stringify(a.errors) === JSON.stringify(b.errors);

export const previewOf = async (call: Previewing) => {
  const { clientId, saveDraft, ...input } = call.body;
  const body = bodyOf(input);
  const reads = new Reads(call);
  const { refusals, found } = await all(
    checksOf(composingOf(call), reads, { id: uuidv7(), clientId, body, planNumber: 1, choose: select }),
  );
  // That nothing is selected follows from what was refused before.
  const told = refusals.filter(({ code }, index) => index === 0 || code !== 'no_targets');
  const ofDraft = saveDraft ? (await all(checksOfDraft(reads, clientId, body))).refusals : null;
  const later = ofDraft === null ? [] : told.filter((one) => !ofDraft.some((other) => isSame(one, other)));
  const taken = await takenRefOf(call, { clientId, body });
  const quota = await previewQuota(call, found?.plan.targets ?? []);
  const full = quota.refusal === null ? [] : [quota.refusal];
  const now = [...(ofDraft ?? told), ...(taken === null ? [] : [taken]), ...(saveDraft ? [] : full)];
  return {
    object: 'post_preview' as const,
    valid: now.length === 0,
    problems: [
      ...now.map((one) => problem('create', one)),
      ...[...later, ...(saveDraft ? full : [])].map((one) => problem('publish', one)),
    ],
    approvalRequired: found?.isHeld ?? false,
    warnings: found === null ? [] : bodyWarnings(call, found),
    verdicts: found === null ? [] : await verdictsOf(call, body, found, told),
    quota: quota.shown,
    cadence: found === null ? null : await cadencesOf(call, found),
  };
};

/** Of the accounts that anything limits; null: of none. */
const cadencesOf = async (call: Previewing, { accounts }: Checked) => {
  const rules = await postingRulesOf(call.deps.pool, call.workspaceId);
  const all = await Promise.all(accounts.map((one) => showCadence(call, one, rules)));
  const limited = all.filter(({ windows, minIntervalMinutes }) => windows.length > 0 || minIntervalMinutes !== null);
  return limited.length === 0 ? null : limited;
};

const bodyWarnings = ({ body }: Previewing, { isHeld }: Checked): readonly PreviewWarning[] => [
  ...(body.targets.mode === 'group' || body.targets.platforms === undefined
    ? []
    : [warning('platforms_ignored', '/targets/platforms', 'narrows a group only, and is ignored here')]),
  ...(body.requestApproval && !isHeld
    ? [warning('approval_not_required', '/requestApproval', 'no approval is required, so it changes nothing')]
    : []),
];

/**
 * The content of each destination, computed once for accounts of one network that allow the same. For large bodies, one
 * network in each turn of the event loop. The checks have found no fault with accounts that `gated` does not name.
 */
const contentsOf = async (
  body: PostBody,
  destinations: readonly Destination[],
  { assets, gated, bytes }: Checked,
): Promise<(destination: Destination) => PreviewedContent> => {
  const faulty = new Set(gated.map(({ accountId }) => accountId));
  const known = new Map<string, PreviewedContent>();
  const shown = new Map<Destination, PreviewedContent>();
  for (const destination of destinations) {
    const { platform, scopes, accountId } = destination;
    const key = `${platform} ${grantsOf(platform, scopes)}`;
    let content = known.get(key);
    if (content === undefined) {
      const isChecked = accountId !== '' && !faulty.has(accountId);
      const errors = isChecked ? [] : [...ruleIssues(body, destination, assets)];
      content = previewContent(body, destination, assets, errors);
      known.set(key, content);
      if (bytes >= slowToCount) await setImmediate();
    }
    shown.set(destination, content);
  }
  return (destination) => {
    const content = shown.get(destination);
    if (content === undefined) throw new BrokenInvariant('every destination of a preview has content');
    return content;
  };
};

const verdictsOf = async (call: Previewing, body: PostBody, found: Checked, refused: readonly Rejection[]) => {
  const { plan, accounts, clients } = found;
  const byAccount = new Map(found.destinations.map((one) => [one.accountId, one]));
  const planned = plan.targets.flatMap((target) => {
    const destination = byAccount.get(target.accountId);
    return destination === undefined ? [] : [{ target, destination }];
  });
  const unconnected = unconnectedOf(body, clients[0]?.id ?? '', found.destinations);
  const contents = await contentsOf(body, [...planned.map((one) => one.destination), ...unconnected], found);
  const same = await sameTextsOf(call, body, planned);
  const issues = refused.flatMap(({ errors }) => errors);
  const retrying = new Set(clients.filter((one) => one.retriesWhenAbsent).map(({ id }) => id));
  const statuses = new Map(accounts.map(({ id, status }) => [id, status]));
  const shown = (destination: Destination, accountId: string | null, more: readonly PreviewWarning[]) => {
    const { errors: own, warnings, ...content } = contents(destination);
    const { platform } = destination;
    const errors = errorsOf(body, destination, issues, own).slice(0, maxIssues);
    const all = [...more.filter((one) => one.willFail), ...warnings, ...more.filter((one) => !one.willFail)];
    return {
      platform,
      accountId,
      ok: errors.length === 0,
      errors: accountId === null ? errors : errors.map((one) => ({ ...one, accountId, platform })),
      warnings: all.slice(0, maxIssues),
      ...content,
    };
  };
  return [
    ...planned.map(({ target, destination }) => {
      const again = same.get(target.accountId);
      const about = [
        ...found.warned
          .filter(({ accountId }) => accountId === target.accountId)
          .map(({ code, path, message }) => warning(code, path, message)),
        ...accountWarnings(statuses.get(target.accountId) ?? ''),
        ...(again === undefined ? [] : [duplicate(again)]),
        ...(retrying.has(target.clientId) ? retryWarnings(target) : []),
      ];
      return { ...shown(destination, target.accountId, about), ...timesOf(target, body) };
    }),
    ...unconnected.map((destination) => ({ ...shown(destination, null, [noAccount(destination)]), ...timeless(body) })),
  ];
};

/** Networks that narrow a group and on which its client has no account. */
const unconnectedOf = (
  { targetSelection: { mode, platforms } }: PostBody,
  clientId: string,
  known: readonly Destination[],
): readonly Destination[] =>
  (mode === 'group' ? (platforms ?? []) : [])
    .filter((platform) => !known.some((one) => one.platform === platform))
    .map((platform) => ({
      accountId: '',
      clientId,
      platform,
      accountTimezone: null,
      clientTimezone: null,
      scopes: [],
    }));

const noAccount = ({ platform }: Destination): PreviewWarning =>
  warning('no_account', '/targets/platforms', `no account of the client is on ${platform}`);

const duplicate = ({ postId, dueAt }: SameText): PreviewWarning =>
  warning('duplicate_text', '/content', `another post with the same text is due on this account at ${dueAt}`, {
    postId,
  });

const later = (instant: string, seconds: number): string =>
  seconds === 0 ? instant : new Date(Date.parse(instant) + seconds * 1_000).toISOString();

/** Null after the year 9999, for which neither the contract nor Postgres has a form: a delay may pass its end. */
const writable = (instant: string): string | null => (/^\d{4}-/.test(instant) ? instant : null);

/** The id of the post decides the jitter, so only its bounds are known. */
const timesOf = ({ dueAt, jitterSeconds, scheduleMode, scheduleModeReason }: PlannedTarget, body: PostBody) => {
  const scheduledAt = later(dueAt, -jitterSeconds);
  return {
    scheduledAt,
    latestAt: writable(later(scheduledAt, (body.schedule.spreadMinutes ?? 0) * 60)),
    scheduleMode,
    scheduleModeReason,
  };
};

const timeless = ({ scheduleMode }: PostBody) => ({
  scheduledAt: null,
  latestAt: null,
  scheduleMode,
  scheduleModeReason: null,
});

interface Planned {
  readonly target: PlannedTarget;
  readonly destination: Destination;
}

/** By account. */
const sameTextsOf = async (
  call: Previewing,
  body: PostBody,
  planned: readonly Planned[],
): Promise<ReadonlyMap<string, SameText>> => {
  const { deps, workspaceId, principal } = call;
  const asked = planned
    .filter(({ target }) => writable(target.dueAt) !== null)
    .map(({ target: { accountId, platform, dueAt } }) => ({ accountId, platform, dueAt }));
  const texts = [...new Set(asked.map(({ platform }) => platform))].flatMap((platform) => {
    const text = contentFor(body, platform).segments[0].content;
    return text === '' ? [] : [{ platform, text }];
  });
  if (texts.length === 0) return new Map();
  await call.behind(['posts']);
  const among = { workspaceId, ...withinLimit(principal) };
  const found = await sameTexts(deps.knex, among, texts, sameTextHours, asked);
  return new Map(found.map((one) => [one.accountId, one]));
};
