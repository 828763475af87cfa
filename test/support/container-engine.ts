import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

/** Whether a container engine answers here. Costs nothing on a machine without one. */
export async function engineAnswers(): Promise<boolean> {
  const sockets = ['/var/run/docker.sock', path.join(homedir(), '.docker/run/docker.sock')];
  if (process.env.XDG_RUNTIME_DIR) sockets.push(path.join(process.env.XDG_RUNTIME_DIR, 'docker.sock'));
  if (!process.env.DOCKER_HOST && !sockets.some((socket) => existsSync(socket))) return false;
  const { getContainerRuntimeClient } = await import('testcontainers');
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}
