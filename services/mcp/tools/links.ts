import { Type } from 'typebox';
import { invalid } from '#services/api/call/refusal.ts';
import type { ToolCall } from '../call.ts';
import { joined, Maybe, Mode, many, Next, Nullable, Replayed, replayedWords } from '../words.ts';

/** What the tools for links have in common: one tool makes, lists and revokes those of its kind. */

export const LinkAction = Maybe(
  Type.Enum(['create', 'list', 'revoke'], {
    description: 'Default create. list: all, without addresses. revoke: ends that of linkId.',
  }),
);

/** @throws Refusal where an argument that this action needs is missing */
export const named = (name: string, value: string | undefined): string => {
  if (value === undefined) throw invalid(`/${name}`, 'required', 'is missing: action list has it');
  return value;
};

const shared = {
  mode: Mode,
  linkId: Nullable(Type.String()),
  url: Nullable(Type.String()),
  expiresAt: Nullable(Type.String()),
  links: Type.Array(Type.String()),
  replayed: Replayed,
  nextStep: Next,
};

export const linkOutput = <const More extends Parameters<typeof Type.Object>[0]>(more: More) =>
  Type.Object({ ...shared, ...more });

/** The links that there are, or the one that was revoked. */
export const linksAnswer = <More>(call: ToolCall, more: More, links: readonly string[], isCut = false) => {
  const nextStep = 'action revoke with a linkId ends a link; nobody uses it from then on.';
  const text = joined(
    `${many(links.length, 'link')} (${call.mode}).`,
    ...links.map((line) => `- ${line}`),
    isCut ? 'Older ones are left out.' : null,
    nextStep,
  );
  const none = { linkId: null, url: null, expiresAt: null };
  return { text, data: { mode: call.mode, ...none, links: [...links], replayed: false, nextStep, ...more } };
};

interface Made {
  readonly id: string;
  readonly url: string | null;
  readonly expiresAt: string;
  readonly replayed: boolean;
  readonly text: string;
  readonly nextStep: string;
}

/** The link that was made now, or by the call that this one repeats. */
export const madeLink = <More>(call: ToolCall, more: More, { id, url, expiresAt, replayed, text, nextStep }: Made) => ({
  text: joined(text, replayedWords(replayed), nextStep),
  data: { mode: call.mode, linkId: id, url, expiresAt, links: [], replayed, nextStep, ...more },
});
