(CNN) -- Story 4 begins

  It "goes on"  
and ends.

@highlight

First point 4

@highlight

Second”
