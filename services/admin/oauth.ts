import { rotateSigningKey } from '#services/auth/oauth/keys.ts';
import type { Admin, CommandOutput } from './context.ts';

/** The authorization server. */
export const rotateOAuthKey = async ({ pool, secrets }: Admin): Promise<CommandOutput> => {
  const { kid, signsAt, isNew } = await rotateSigningKey(pool, secrets);
  return { key: kid, signsFrom: signsAt, isNew };
};
