/* A plug-in of another version of the interface: only its head may be looked at. */
#include "textgen_reward.h"

const textgen_reward_plugin_info *textgen_reward_plugin(void) {
    static const struct {
        size_t size;
        uint32_t abi;
    } info = {sizeof info, TEXTGEN_REWARD_ABI + 1};
    return (const textgen_reward_plugin_info *)(const void *)&info;
}
