import { Rejection } from '#domain/decider.ts';
import { person } from '#domain/person.ts';
import { personemail } from '#domain/personemail.ts';
import type { CommandContext } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { membershipsNow } from '../judged.ts';
import { People } from './credentials.ts';
import type { PeopleDeps } from './deps.ts';
import { emailClaimIdOf, emailMac, installationId } from './emails.ts';
import { endPersonLinks } from './person-links.ts';
import { loadPerson } from './register.ts';
import { endSessions } from './sessions.ts';

/**
 * Erases a person who is a member of no workspace. The address is released before the key goes, because its claim is
 * found by the address. If we die anywhere in between, the same command goes on: each step is done once.
 * @throws Rejection where the person is still a member
 */
export const erasePerson = async (
  deps: PeopleDeps & { readonly dataKeys: { destroy(subject: string): Promise<void> } },
  personId: string,
  by: Pick<CommandContext, 'actor' | 'correlationId' | 'causationId' | 'commandId' | 'now'>,
): Promise<void> => {
  const homes = await membershipsNow(deps, personId);
  if (homes.length > 0) {
    const names = homes.map(({ name }) => name).join(', ');
    throw new Rejection('validation_failed', `Remove the person from ${names} first.`);
  }
  const context: CommandContext = { ...by, workspaceId: installationId };
  const email = (await loadPerson(deps, personId))?.email ?? null;
  await endSessions(deps, personId, { allBut: null }, 'erased');
  await endPersonLinks(deps, personId);
  await new People(deps.pool, deps.secrets).remove(personId);
  if (email !== null) {
    const claimId = emailClaimIdOf(emailMac(deps.secrets, email));
    await execute(deps.store, personemail, claimId, { type: 'Release', personId }, context);
  }
  await deps.dataKeys.destroy(personId);
  await execute(deps.store, person, personId, { type: 'Erase' }, context);
};
