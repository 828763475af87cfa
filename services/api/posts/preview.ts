import type { Rejection } from '#domain/decider.ts';
import {
  type ComposedWarning,
  composedWarnings,
  errorsOf,
  type PreviewWarning,
  previewContent,
  unusedAltTexts,
} from '#domain/post/preview.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import { postingRulesOf } from '#projections/queries/posting-rules.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { PostCreate } from '#schemas/http/post.ts';
import { PostPreview } from '#schemas/http/preview.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { maxIssues } from '#schemas/validator.ts';
import { allOf, type Checked, checksOf, checksOfDraft } from '#services/workflows/posts/compose.ts';
import { showCadence } from '../accounts/cadence.ts';
import { type Call, operation } from '../call/operation.ts';
import { forEachContent, foresee, writable } from './answers.ts';
import { bodyOf } from './body.ts';
import { composingOf, Reads, select } from './checks.ts';
import { postsTag, previewExample } from './examples.ts';
import { takenRefOf } from './external-ref.ts';
import { askedWarnings, askFirst } from './facts.ts';
import { previewQuota } from './quota.ts';

/** What publishing a body would do now. Nothing is written. */

type Previewing = Call<unknown, unknown, PostCreate>;

const problem = (at: 'create' | 'publish', { code, message, errors }: Rejection) => ({
  at,
  code,
  detail: message,
  errors: errors.slice(0, maxIssues),
});

const isSame = (a: Rejection, b: Rejection): boolean =>
  a.code === b.code && JSON.stringify(a.errors) === JSON.stringify(b.errors);

const previewOf = async (call: Previewing) => {
  const { clientId, saveDraft, ...input } = call.body;
  const body = bodyOf(input);
  const reads = new Reads(call);
  const { refusals, found } = await allOf(
    checksOf(composingOf(call), reads, { id: uuidv7(), clientId, body, planNumber: 1, choose: select }),
  );
  // That nothing is selected follows from what was refused before.
  const reported = refusals.filter(({ code }, index) => index === 0 || code !== 'no_targets');
  const ofDraft = saveDraft ? (await allOf(checksOfDraft(reads, clientId, body))).refusals : null;
  const later = ofDraft === null ? [] : reported.filter((one) => !ofDraft.some((other) => isSame(one, other)));
  const taken = await takenRefOf(call, { clientId, body });
  const quota = await previewQuota(call, found?.plan.targets ?? []);
  const full = quota.refusal === null ? [] : [quota.refusal];
  const composed = found === null ? null : composedOf(call, body, found);
  const now = [...(ofDraft ?? reported), ...(taken === null ? [] : [taken]), ...(saveDraft ? [] : full)];
  return {
    object: 'post_preview' as const,
    valid: now.length === 0,
    problems: [
      ...now.map((one) => problem('create', one)),
      ...[...later, ...(saveDraft ? full : [])].map((one) => problem('publish', one)),
    ],
    approvalRequired: found?.isHeld ?? false,
    warnings: composed?.ofBody ?? [],
    verdicts:
      found === null || composed === null ? [] : await verdictsOf(call, body, found, reported, composed.ofTarget),
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

/** The warnings of a body by what they are about: those about a network without a verdict are about the whole body. */
const composedOf = (call: Previewing, body: PostBody, { plan, isHeld }: Checked) => {
  const zone = call.notes.given.has('timezone') ? 'sent' : 'stored';
  const all = [
    ...composedWarnings(body, { targets: plan.targets, isHeld, zone }),
    ...unusedAltTexts(call.body.mediaAltTexts, body),
  ];
  const networks = new Set(plan.targets.map(({ platform }) => platform));
  const isOfBody = ({ platform }: ComposedWarning): boolean => platform === null || !networks.has(platform);
  const shown = ({ platform: _platform, accountId: _accountId, ...one }: ComposedWarning): PreviewWarning => one;
  return {
    ofBody: all.filter(isOfBody).slice(0, maxIssues).map(shown),
    ofTarget: ({ platform, accountId }: PlannedTarget): readonly PreviewWarning[] =>
      all
        .filter((one) => one.platform === platform && (one.accountId === null || one.accountId === accountId))
        .map(shown),
  };
};

const verdictsOf = async (
  call: Previewing,
  body: PostBody,
  found: Checked,
  refused: readonly Rejection[],
  ofTarget: (target: PlannedTarget) => readonly PreviewWarning[],
) => {
  const issues = refused.flatMap(({ errors }) => errors);
  const [foreseen, answers] = await Promise.all([
    foresee(call, body, found, { postId: null, waits: true }),
    askFirst(call, found.accounts),
  ]);
  const byId = new Map(found.accounts.map((one) => [one.id, one]));
  const contents = await forEachContent(
    body,
    foreseen.map(({ destination }) => destination),
    found,
    (destination, errors) => previewContent(body, destination, found.assets, errors),
  );
  const asked = (target: PlannedTarget, destination: Destination): readonly PreviewWarning[] =>
    askedWarnings({ body, destination, assets: found.assets }, byId.get(target.accountId), answers, target.dueAt);
  return foreseen.map(({ destination, target, warnings }) => {
    const { errors: own, ...content } = contents(destination);
    const { platform } = destination;
    const accountId = target?.accountId ?? null;
    const errors = errorsOf(body, destination, issues, own).slice(0, maxIssues);
    return {
      platform,
      accountId,
      ok: errors.length === 0,
      errors: accountId === null ? errors : errors.map((one) => ({ ...one, accountId, platform })),
      warnings: failingFirst([
        ...warnings,
        ...(target === null ? [] : [...asked(target, destination), ...ofTarget(target)]),
      ]).slice(0, maxIssues),
      ...content,
      ...(target === null ? timeless(body) : timesOf(target, body)),
    };
  });
};

const failingFirst = (all: readonly PreviewWarning[]): readonly PreviewWarning[] => [
  ...all.filter(({ willFail }) => willFail),
  ...all.filter(({ willFail }) => !willFail),
];

const later = (instant: string, seconds: number): string =>
  seconds === 0 ? instant : new Date(Date.parse(instant) + seconds * 1_000).toISOString();

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

export const previewPost = operation({
  id: 'previewPost',
  method: 'POST',
  path: '/posts/preview',
  tag: postsTag,
  summary: 'Preview a post',
  description: [
    'Says what publishing this body would do now: for each account the text, title, files and times, every rule that it breaks, and every required override that is missing. **It writes nothing**: no post, no event, no key.',
    '`valid` is true exactly when POST /posts would accept the same body at this moment. `problems` lists every reason against it; a refused POST /posts has the code of the first, and the faults of all. What `warnings` say never refuses a body; a warning with `willFail` names the code with which that target would fail when it is published.',
    'A network that wants to be asked what an account may post, such as TikTok, is asked for at most 20 accounts: what it does not allow now is a warning with `willFail`. POST /posts does not ask it; the publisher does, right before the post goes out.',
    'With `saveDraft`, `valid` says whether the draft would be accepted, and `problems` with `at: publish` and the verdicts say what its publication needs.',
  ].join('\n\n'),
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  body: PostCreate,
  answer: PostPreview,
  codes: [],
  example: previewExample,
  handle: async (call) => ({ data: await previewOf(call) }),
});
