import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { PostBody } from '#schemas/post.ts';
import { breachesOf, type ClientRules, type SentTexts } from './client-rules.ts';
import { pointer } from './compose.ts';
import { contentFor, firstCommentOf } from './content.ts';
import { rulesOf, sentText, titleFor } from './platforms/index.ts';

/** What a post says on one network, held against the rules of the clients that it concerns there. */

const textsOf = (body: PostBody, platform: Platform): SentTexts => {
  const { segments, overrides } = contentFor(body, platform);
  const [head, ...replies] = segments;
  const others = [titleFor(platform, head.content, overrides), firstCommentOf(platform, overrides)];
  return {
    segments: [
      sentText(rulesOf(platform).text, head.content, overrides).text,
      ...replies.map(({ content }) => content),
    ],
    others: others.filter((text) => text !== null),
    links: typeof overrides.link === 'string' ? [overrides.link] : [],
  };
};

export interface Ruled {
  readonly errors: readonly Issue[];
  readonly warnings: readonly Issue[];
}

/** @param rules of the client of the post, and of that of the account where it is another */
export const ruledOn = (body: PostBody, platform: Platform, rules: readonly ClientRules[]): Ruled => {
  const texts = textsOf(body, platform);
  const found = rules.flatMap((one) => breachesOf(one, texts));
  const issueOf = ({ code, part, message }: (typeof found)[number]): Issue => ({
    path: pointer(body, platform, part, '/content'),
    code,
    message,
  });
  return {
    errors: found.filter(({ isWarning }) => !isWarning).map(issueOf),
    warnings: found.filter(({ isWarning }) => isWarning).map(issueOf),
  };
};
