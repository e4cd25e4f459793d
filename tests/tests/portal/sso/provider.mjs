// npm's oidc-provider as a test server: any name signs in, and is somebody@example.com with a verified address.
import { createRequire } from 'node:module';

const [, , folder, port, callback, secret] = process.argv;
const { default: Provider } = await import(createRequire(`${folder}/`).resolve('oidc-provider'));

const account = (id) => ({
  accountId: id,
  claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: id !== 'unverified', name: `Name of ${id}` }),
});
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: 'packhouse', client_secret: secret, redirect_uris: [callback], application_type: 'native' }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  findAccount: (_, id) => account(id),
  pkce: { required: () => true },
  cookies: { keys: ['a key of the tests'] },
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
