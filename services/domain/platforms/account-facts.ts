/** What a network says of an account now, held against a target: before it goes out, and where it is shown to its author. */
import type { AccountFacts } from '#schemas/account.ts';
import type { GateCode } from '#schemas/issues.ts';
import type { Failure } from '#schemas/target.ts';
import { failureCodes } from './failure-codes.ts';
import { type GateError, type GateInput, invalid } from './gate.ts';
import { isSet, overrideRules } from './overrides.ts';
import { rulesOf } from './registry.ts';

type Judged = Pick<GateInput, 'platform' | 'overrides' | 'media'>;

const error = (code: GateCode, path: string, message: string, mediaId: string | null = null): GateError => ({
  ...{ path, code, message, mediaId },
});

/** The values that the account does not allow now, among those that the target is sent with. */
const valueErrors = ({ platform, overrides }: Judged, { allows }: AccountFacts): readonly GateError[] =>
  Object.entries(overrideRules(platform)).flatMap(([key, rule]) => {
    const allowed = Object.hasOwn(allows, key) ? allows[key] : undefined;
    const set = isSet(overrides, key) ? overrides[key] : rule.default;
    const value = rule.type === 'enum' ? (rule.aliases?.[String(set)] ?? set) : set;
    if (allowed === undefined || value === undefined || allowed.some((one) => one === value)) return [];
    const words =
      allowed.length === 0
        ? 'is not allowed by the account now'
        : `must be one of those that the account allows now: ${allowed.join(', ')}`;
    return [error('override_not_granted', `/overrides/${key}`, `${key} ${words}`)];
  });

const seconds = (ms: number): string => `${Math.floor(ms / 100) / 10} s`;

const lengthErrors = ({ platform, media }: Judged, { maxDurationMs }: AccountFacts): readonly GateError[] =>
  media.flatMap(({ id, probe }) => {
    const ms = probe?.durationMs ?? null;
    if (maxDurationMs === null || ms === null || ms <= maxDurationMs) return [];
    const { name } = rulesOf(platform);
    const message = `${name} takes videos of at most ${seconds(maxDurationMs)} of this account; this one has ${seconds(ms)}`;
    return [error('media_too_long', '/mediaIds', message, id)];
  });

/** Why the target would fail if it went out now. */
export const factsErrors = (target: Judged, facts: AccountFacts): readonly GateError[] => [
  ...valueErrors(target, facts),
  ...lengthErrors(target, facts),
];

/** Why the target fails now; null: it may go out, or has to wait. */
export const factsFailure = (target: Judged, facts: AccountFacts): Failure | null => {
  const [first] = factsErrors(target, facts);
  return first === undefined ? null : invalid(first.code, first.message, first.mediaId);
};

const ofNetwork = (
  category: Failure['category'],
  code: keyof typeof failureCodes,
  actor: Failure['actor'],
  platformMessage: string | null,
): Failure => ({
  ...{ category, code, message: failureCodes[code], platformCode: null, platformMessage },
  ...{ retryable: true, actor, mediaId: null },
});

/** The account may post nothing until an instant, or its network takes no further question. */
export const postsLater = ofNetwork('rate_limited', 'network_rate_limited', 'platform', null);
/** It may post nothing until its owner does something on the network. */
export const mayNotPost = ofNetwork('permission', 'account_not_permitted', 'user', null);
/** The network did not say what the account may post. */
export const saidNothing = (reason: string): Failure => ofNetwork('platform_down', 'network_down', 'platform', reason);
/** It refuses the account. */
export const refusesAccount = (reason: string): Failure =>
  ofNetwork('reauth_required', 'reauth_required', 'user', reason);
